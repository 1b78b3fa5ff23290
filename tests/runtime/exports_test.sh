#!/bin/sh
# Compares what our libcudart exports with the names that the vendor's 13.0 library exports
# (vendor_names.txt: nm -D --defined-only libcudart.so.13), and both with the rows of exports.inc.
#   exports_test.sh LIBRARY NAMES ROWS
set -eu
library=$1 names=$2 rows=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C

sort "$names" >"$work/expected"
nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' | sort >"$work/exported"
sed 's/$/@@libcudart.so.13/' "$work/expected" | sort >"$work/versioned"
if ! diff "$work/versioned" "$work/exported"; then
  echo "FAIL: the exported names (right) are not the vendor's (left)"
  exit 1
fi
sed -nE 's/^(CALL|FORWARD|PRIVATE|PTSZ|PTDS|REFUSED)\((\w+),.*/\2/p' "$rows" | sort >"$work/rows"
if ! diff "$work/expected" "$work/rows"; then
  echo "FAIL: the rows of exports.inc (right) are not the vendor's names (left)"
  exit 1
fi
readelf -d "$library" | grep -q 'SONAME.*\[libcudart.so.13\]' || {
  echo "FAIL: the SONAME is not libcudart.so.13"
  exit 1
}
refused=$(grep -c '^REFUSED' "$rows")
forwarded=$(grep -c '^FORWARD' "$rows")
total=$(wc -l <"$work/expected")
echo "ok: $total names under version libcudart.so.13: $((total - refused)) implemented" \
  "($forwarded by the driver alone), $refused refused"
