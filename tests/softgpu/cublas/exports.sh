#!/bin/sh
# exports.sh NM LIBRARY NAMES REFUSED CUDA_ROOT
# LIBRARY exports exactly the names in NAMES, under the version node that is its SONAME; those that
# it only refuses and a public header declares are exactly the lines of REFUSED. Where the vendor's
# library is installed, NAMES is compared with it too.
set -eu
nm=$1 library=$2 names=$3 refused=$4 cuda_root=$5
soname=$(basename "$library")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LC_ALL=C

exported() {  # NAME@@NODE without the symbol of the node itself
  "$nm" -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sort
}

exported "$library" > "$work/exported"
sed -n 's/^NAME(\(.*\))$/\1/p' "$names" | sort > "$work/names"
sed "s/\$/@@$soname/" "$work/names" | sort > "$work/expected"
echo "$(wc -l < "$work/names") names in $soname"
diff "$work/expected" "$work/exported"

vendor=$cuda_root/lib64/$soname
[ -e "$vendor" ] || vendor=$cuda_root/lib/$soname
if [ -e "$vendor" ]; then
  exported "$vendor" | diff - "$work/exported"
  echo "the same as in $vendor"
else
  echo "no vendor library below $cuda_root to compare with"
fi

# Implementations are indirect functions ("i"), refusals are weak ("W").
"$nm" -D --defined-only "$library" | awk '$2 == "W" { sub(/@.*/, "", $3); print $3 }' | sort \
  > "$work/weak"
cat "$cuda_root"/include/cublas_api.h "$cuda_root"/include/cublasLt.h |
  grep -oE '\bcublas[A-Za-z0-9_]+ *\(' | tr -d ' (' | sort -u > "$work/declared"
comm -12 "$work/weak" "$work/declared" > "$work/refused"
echo "$(wc -l < "$work/refused") of the declared ones are refused"
sort "$refused" | diff - "$work/refused"
