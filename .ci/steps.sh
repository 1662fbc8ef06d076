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

# What a step prints goes to `$printed`, and from there on, while the process `$showing` lives: a pipe does not block while a Node.js
# program has it too, so that what others write to one that is full is lost, or ends them.
begin() {
  printf '\n== %s\n' "$*"
  running=$*
  started=$SECONDS
  : >"$printed"
  sleep infinity &
  showing=$!
  tail -n +1 -f -s 0.2 --pid="$showing" "$printed" &
  read_processors
  used_before=$used
}

show_rest() {
  {
    kill "$showing"
    wait
  } 2>/dev/null
}

# A step whose processor seconds are far fewer than its seconds and processors allow can have another beside it.
end() {
  show_rest
  read_processors
  taken+=("$(printf '%5d s %5d  %s' "$((SECONDS - started))" "$((used - used_before))" "$running")")
  running=
}

step() {
  begin "$@"
  ("$@") >>"$printed" 2>&1
  end
}

# Two steps beside each other, of which neither keeps both cores busy: `together COMMAND... -- COMMAND...`. What the second prints
# stands below what the first does.
together() {
  local first=() beside second status=0
  while [ "$1" != -- ]; do
    first+=("$1")
    shift
  done
  shift
  begin "${first[*]}, beside $*"
  beside=$(mktemp)
  "$@" >"$beside" 2>&1 &
  second=$!
  ("${first[@]}") >>"$printed" 2>&1 || status=$?
  wait "$second" || status=$?
  {
    printf '\n== %s\n' "$*"
    cat "$beside"
  } >>"$printed"
  rm "$beside"
  [ "$status" = 0 ] || exit "$status"
  end
}

# Like `step`, for what needs programs that this machine may be unable to have (69): that is said at the end.
step_if_available() {
  local status=0
  begin "$@"
  ("$@") >>"$printed" 2>&1 || status=$?
  [ "$status" = 0 ] || [ "$status" = 69 ] || exit "$status"
  [ "$status" = 0 ] || left_out+=("$*")
  end
}

report() {
  local line
  if [ -n "$running" ]; then
    show_rest
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
