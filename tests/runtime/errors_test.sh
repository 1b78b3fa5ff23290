#!/bin/sh
# The rows of errors.inc are the enumerators of cudaError_t, all of them, in the header's order.
#   errors_test.sh DRIVER_TYPES_H ROWS
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -n '/^enum.*cudaError$/,/^};/p' "$1" | sed -nE 's/^[ ,]*(cuda[A-Za-z0-9]+) *=.*/\1/p' >"$work/header"
sed -nE 's/^ERROR\((\w+),.*/\1/p' "$2" >"$work/rows"
diff "$work/header" "$work/rows" || {
  echo "FAIL: errors.inc (right) differs from the header (left)"
  exit 1
}
test "$(wc -l <"$work/rows")" -gt 100
echo "ok: $(wc -l <"$work/rows") errors named"
