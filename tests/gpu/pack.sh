#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# pack.sh OUT.tar.xz: what tests/gpu/run.sh needs, for a machine with a device but without libgccjit or a package manager.
#
# The archive holds the built programs, the libraries that they are linked with but for the C library, the parts of GCC
# that libgccjit runs, and the examples.  The other machine needs a C library not older than this one's with its
# development files, binutils, NVRTC of the driver's major version or an older one, cuBLASLt and cuDNN, which the CUDA
# toolkit or PyTorch has (SCRIMP_CUDA_PATH lists their folders, with colons between); there:
# tar -xf OUT.tar.xz && scrimp-gpu/tests/gpu/run.sh
set -euo pipefail
[[ $# == 1 && $1 == *.tar.xz ]] || { sed -n '3,9s/^# *//p' "$0" >&2; exit 1; }
out=$(realpath "$1")
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
cmake --preset release
cmake --build build/release --target scrimp gpu_tests
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
to=$stage/scrimp-gpu
mkdir -p "$to/build/tests/e2e" "$to/lib" "$to/docs/results/gpu" "$to/tests"
git rev-parse --short HEAD >"$to/COMMIT"
cp -r examples "$to/"
cp -r tests/gpu "$to/tests/"
programs=(scrimp tests/property_test_cuda_{library,ops} tests/e2e/e2e_{slow_cuda,test_cuda{,_compile,_fast}})
for program in "${programs[@]}"; do
  strip -o "$to/build/$program" "build/release/$program"
done
ldd "${programs[@]/#/build/release/}" | awk '$2 == "=>" { print $3 }' | sort -u |
  grep -v -e '/libc\.so' -e '/libm\.so' | xargs -I{} cp -L {} "$to/lib/"
gcc=$(dirname "$(gcc-12 -print-libgcc-file-name 2>/dev/null || gcc -print-libgcc-file-name)")
parts=$to/lib/gcc/$(basename "$(dirname "$gcc")")/$(basename "$gcc")
mkdir -p "$parts"
cp -L "$gcc"/{collect2,libgcc.a,libgcc_eh.a,crtbeginS.o,crtendS.o} "$parts/"
cp -L "$(gcc -print-file-name=libgcc_s.so.1)" "$parts/"
echo 'GROUP ( libgcc_s.so.1 -lgcc )' >"$parts/libgcc_s.so"
tar -C "$stage" -cJf "$out.tmp" scrimp-gpu
mv "$out.tmp" "$out"
du -h "$out"
