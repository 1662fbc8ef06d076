# Sourced by `run` and `proof`: steps, and a table of the seconds that each took. What a step writes to `$closing` stands below it.
# A step's tests that failed stand above it once more, since who reads a log of a megabyte begins at its end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Nothing is compiled again after a change.
export CARGO_INCREMENTAL=0

taken=()
left_out=()
running=
closing=$(mktemp)
printed=$(mktemp)
clock=$(mktemp)

# Sets `used` to the processor seconds of all programs that have ended.
read_processors() {
  local user system
  times >"$clock"
  { read -r _ && read -r user system; } <"$clock"
  used=$((${user%m*} * 60 + ${system%m*} * 60))
  user=${user#*m} system=${system#*m}
  used=$((used + ${user%%[.,]*} + ${system%%[.,]*}))
}

begin() {
  printf '\n== %s\n' "$*"
  running=$*
  started=$SECONDS
  read_processors
  used_before=$used
}

# A step whose processor seconds are far fewer than its seconds and processors allow can have another beside it.
end() {
  read_processors
  taken+=("$(printf '%5d s %5d  %s' "$((SECONDS - started))" "$((used - used_before))" "$running")")
  running=
}

step() {
  begin "$@"
  "$@" 2>&1 | tee "$printed"
  end
}

# Two steps beside each other, of which neither keeps both cores busy: `together COMMAND... -- COMMAND...`. What the second prints
# stands below what the first does.
together() {
  local first=() beside status=0
  while [ "$1" != -- ]; do
    first+=("$1")
    shift
  done
  shift
  begin "${first[*]}, beside $*"
  beside=$(mktemp)
  "$@" >"$beside" 2>&1 &
  "${first[@]}" 2>&1 | tee "$printed" || status=$?
  wait $! || status=$?
  printf '\n== %s\n' "$*"
  tee -a "$printed" <"$beside"
  rm "$beside"
  [ "$status" = 0 ] || exit "$status"
  end
}

# Like `step`, for what needs programs that this machine may be unable to have (69): that is said at the end.
step_if_available() {
  local status=0
  begin "$@"
  "$@" 2>&1 | tee "$printed" || status=$?
  [ "$status" = 0 ] || [ "$status" = 69 ] || exit "$status"
  [ "$status" = 0 ] || left_out+=("$*")
  end
}

report() {
  local line
  if [ -n "$running" ]; then
    taken+=("$(printf '%5d s        %s: failed' "$((SECONDS - started))" "$running")")
    printf '\n== failed in: %s\n' "$running"
    sed -n '/^ *not ok /,/^ *\.\.\.$/p' "$printed" | head -n 200
  fi
  read_processors
  printf '\n== %s: seconds, and those of processors\n' "$0"
  [ "${#taken[@]}" = 0 ] || printf '%s\n' "${taken[@]}"
  printf '%5d s %5d  in all\n' "$SECONDS" "$used"
  for line in "${left_out[@]}"; do
    printf 'Left out, since this machine cannot have what it needs: %s\n' "$line"
  done
  cat "$closing"
  rm "$closing" "$printed" "$clock"
}
trap report EXIT
