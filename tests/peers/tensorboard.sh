#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# tensorboard.sh PYTHON: TensorBoard's own reader finds in train --tensorboard what train --log says, or exit status 77
# where the package is not installed.  $SCRIMP_PYTHON comes first.
python=${SCRIMP_PYTHON:-$1}
command -v "$python" >/dev/null && "$python" -c 'import tensorboard.backend.event_processing' 2>/dev/null || {
  echo "skipped: $python has no tensorboard (python3 -m pip install tensorboard); \$SCRIMP_PYTHON names another python"
  exit 77
}
exec "$python" -B "$(dirname "$0")/tensorboard_events.py"
