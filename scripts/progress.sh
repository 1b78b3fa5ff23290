# For the other scripts to source: shows that a long command is at work.
#
#   with_progress TITLE LOG COMMAND [ARGUMENTS...]
#
# runs COMMAND with its output in LOG, and returns its exit code. On a terminal one line moves until the command ends;
# elsewhere a plain line comes every 15 s. Where the log counts its steps as ninja does ("[12/345]"), the line tells
# them, too. It goes to standard error.

progress_line() {
  local steps
  steps="$(tail -c 4000 "$2" 2> /dev/null | grep -oE '^\[[0-9]+/[0-9]+\]' | tail -n 1 | tr -d '[]')"
  printf '%s: %s%d s' "$1" "${steps:+${steps/\// of } steps, }" $((SECONDS - progress_begin))
}

with_progress() {
  local title="$1" log="$2" code=0 progress_begin=$SECONDS told=$SECONDS job
  shift 2
  : > "$log"
  set -m  # a process group of its own, which Ctrl-C here ends as a whole
  "$@" > "$log" 2>&1 < /dev/null &
  set +m
  job=$!
  trap 'kill -- "-$job" 2> /dev/null; wait "$job" 2> /dev/null || true; exit 130' INT TERM
  while kill -0 "$job" 2> /dev/null; do
    if [[ -t 2 ]]; then
      printf '\r\033[K%s' "$(progress_line "$title" "$log")" >&2
    elif ((SECONDS - told >= 15)); then
      printf '%s\n' "$(progress_line "$title" "$log")" >&2
      told=$SECONDS
    fi
    sleep 0.2
  done
  if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
  wait "$job" || code=$?
  trap - INT TERM
  return "$code"
}
