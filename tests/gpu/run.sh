#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# What only a machine with a CUDA device can say of --device cuda, in one dated log.  Exit status 77 without a device.
set -uo pipefail
usage() {
  cat <<'TEXT'
usage: tests/gpu/run.sh [options]

Runs on a CUDA device: the tests that otherwise run on a simulated one, compute-sanitizer over a few steps, and
benchmarks beside PyTorch and JAX where these are installed.  The log is Markdown.

  --build DIR      programs that are built already (default: build/release is built here, but in what
                   tests/gpu/pack.sh packed for machines without libgccjit)
  --out FILE       the log (default: docs/results/gpu/DATE-DEVICE.md)
  --parts LIST     of tests, sanitizer, bench (default: all, with commas between)
  --cases LIST     of the benchmarks, as bench.py --help says: gpt2-64:bf16:100%+min+compiled,resnet50-256
  --seconds N      the longest that a test may take (default: 1800)
  --simulated      on the simulated device, with small cases: tests this script
TEXT
}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build= out= parts=tests,sanitizer,bench cases= seconds=1800 simulated=
while (($#)); do
  case $1 in
    --build) build=$(realpath "$2"); shift 2 ;;
    --out) out=$2; shift 2 ;;
    --parts) parts=$2; shift 2 ;;
    --cases) cases=$2; shift 2 ;;
    --seconds) seconds=$2; shift 2 ;;
    --simulated) simulated=1; shift ;;
    --help|-h) usage; exit 0 ;;
    *) echo "run.sh: no such option: $1" >&2; usage >&2; exit 1 ;;
  esac
done

export CUDA_DEVICE_ORDER=PCI_BUS_ID # as nvidia-smi counts
if [[ $simulated ]]; then
  device="simulated device" driver=none
elif listed=$(nvidia-smi -i "${CUDA_VISIBLE_DEVICES:-0}" --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null) && [[ $listed ]]; then
  IFS=, read -r device driver memory <<<"$listed"
  driver="${driver# }, ${memory# }"
else
  echo "skipped: nvidia-smi lists no device on this machine"
  exit 77
fi
if [[ -d $root/lib/gcc ]]; then # what pack.sh packed
  : "${build:=$root/build}"
  gcc=$(echo "$root"/lib/gcc/*/*)
  export LD_LIBRARY_PATH=$root/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} COMPILER_PATH=$gcc LIBRARY_PATH=$gcc
fi
if [[ ! $build ]]; then
  build=$root/build/release
  (cd "$root" && cmake --preset release && cmake --build build/release --target scrimp gpu_tests) >&2 || exit 1
fi
scrimp=$build/scrimp
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
export SCRIMP_SOURCE=$root SCRIMP_BUILD=$build SCRIMP=$scrimp SCRIMP_CACHE=$temporary/cache
if [[ $simulated ]]; then
  export SCRIMP_CUDA_PATH=$build/cuda-sim SCRIMP_SHAPES=1 SCRIMP_TEST_OP=softmax
else
  export SCRIMP_CUDA_REAL=${SCRIMP_CUDA_PATH-} # end-to-end tests put it in the place of the simulated driver's folder
fi
: "${out:=$root/docs/results/gpu/$(date -u +%F)-$(tr -cs '[:alnum:]\n' - <<<"$device" | sed 's/^-*//; s/-*$//').md}"
mkdir -p "$(dirname "$out")"
log=$out # from the start: what is cut off has said what it knew
: >"$log" || exit 1

say() { printf '%s\n' "$@" | tee -a "$log"; }

# check NAME COMMAND...: a row of the log; what it printed only where it failed.  Kernels may hang.
check() {
  local name=$1 said outcome status
  shift
  said=$(mktemp "$temporary/said.XXXXXX")
  SECONDS=0
  timeout "$seconds" "$@" >"$said" 2>&1
  status=$?
  case $status in
    0) outcome=passed ;;
    77) outcome="skipped: $(tail -1 "$said")" ;;
    124) outcome="**failed**: took more than $seconds s" ;;
    *) outcome="**failed**, exit status $status" ;;
  esac
  if [[ $outcome == \*\*failed* ]]; then
    echo "$name" >>"$temporary/failed"
    { echo "--- $name"; tail -40 "$said"; } >&2
  fi
  say "| $name | $outcome | $SECONDS |"
}

# begin NAME COMMAND...: a check beside others, as many as there are processors; their rows come as they end.
begin() {
  while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n; done
  check "$@" &
}

end_checks() {
  wait
  say ""
}

wanted() { [[ ,$parts, == *,$1,* ]]; }

say "# $device, $(date -u +%F)" "" \
  "Written by \`tests/gpu/run.sh\`. Driver: $driver. $("$scrimp" --version | head -1), commit $(
    cat "$root/COMMIT" 2>/dev/null || git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown). Processor: $(
    sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1), $(nproc) threads." ""

if wanted tests; then
  say "## Tests" "" "| test | outcome | seconds |" "|---|---|---|"
  begin "every operation against the CPU's bits" "$build/tests/property_test_cuda_ops"
  if [[ ! $simulated ]]; then
    begin "products by cuBLASLt against the evaluator" "$build/tests/property_test_cuda_library"
    begin "training with cuBLASLt, verify, compiled steps" "$build/tests/e2e/e2e_test_cuda_fast"
    begin "training, resuming, verify: the CPU's files" "$build/tests/e2e/e2e_test_cuda"
    begin "a compiled step in a C program: the CPU's bits" "$build/tests/e2e/e2e_test_cuda_compile"
    for example in $("$build/tests/e2e/e2e_slow_cuda" --list); do
      begin "ten steps of $example: the CPU's bits, and libraries near them" "$build/tests/e2e/e2e_slow_cuda" "$example"
    done
  fi
  end_checks
fi

if wanted sanitizer; then
  say "## compute-sanitizer" "" "| check | outcome | seconds |" "|---|---|---|"
  PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
  for tool in memcheck racecheck synccheck; do
    if [[ ! $simulated ]] && command -v compute-sanitizer >/dev/null; then
      begin "$tool, GPT-2 of one small layer" compute-sanitizer --tool "$tool" --error-exitcode 9 "$scrimp" bench \
        "$root/examples/gpt2.scrimp" -D N=2 -D T=100 -D V=300 -D C=72 -D heads=2 -D layers=1 --device cuda --steps 1
      begin "$tool, ResNet-18" compute-sanitizer --tool "$tool" --error-exitcode 9 "$scrimp" bench \
        "$root/examples/resnet.scrimp" -D depth=18 -D size=64 -D N=2 -D classes=10 --device cuda --steps 1
    else
      say "| $tool | skipped: there is no compute-sanitizer here | 0 |"
    fi
  done
  end_checks
fi

if wanted bench; then
  say "## Benchmarks" ""
  python3 -B "$root/tests/gpu/bench.py" "$scrimp" ${cases:+--cases "$cases"} ${simulated:+--simulated} | tee -a "$log" ||
    echo benchmarks >>"$temporary/failed"
fi
echo "log: $log" >&2
[[ ! -s $temporary/failed ]]
