#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# run.sh PYTHON CASE..., or run.sh PYTHON training.py: parity with PyTorch, or exit status 77 where it is not installed.  $SCRIMP_PYTHON comes first.
python=${SCRIMP_PYTHON:-$1}
shift
skip() {
  echo "skipped: $1.  These tests need Python 3 with numpy, torch (1.13 or newer) and torchvision:"
  echo "  apt-get install python3-torch python3-torchvision   or   python3 -m pip install torch torchvision"
  echo "and \$SCRIMP_PYTHON, or cmake -DSCRIMP_PYTHON=..., where another python3 than the one on the path has them."
  exit 77
}
command -v "$python" >/dev/null || skip "there is no $python"
"$python" -c 'import numpy, torch, torchvision' 2>/dev/null || skip "$python has no numpy, torch or torchvision"
case $1 in
*.py) script=$1 && shift ;;
*) script=run.py ;;
esac
exec "$python" -B "$(dirname "$0")/$script" "$@"
