# Sourced by `run` and `proof`: steps, and a table of the seconds that each took. What a step writes to `$closing` stands below it.
# A step's tests that failed stand above it once more, since who reads a log of a megabyte begins at its end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

taken=()
left_out=()
running=
closing=$(mktemp)
printed=$(mktemp)

begin() {
  printf '\n== %s\n' "$*"
  running=$*
  started=$SECONDS
}

end() {
  taken+=("$(printf '%5d s  %s' "$((SECONDS - started))" "$running")")
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
    taken+=("$(printf '%5d s  %s: failed' "$((SECONDS - started))" "$running")")
    printf '\n== failed in: %s\n' "$running"
    sed -n '/^ *not ok /,/^ *\.\.\.$/p' "$printed" | head -n 200
  fi
  printf '\n== %s\n' "$0"
  [ "${#taken[@]}" = 0 ] || printf '%s\n' "${taken[@]}"
  printf '%5d s  in all\n' "$SECONDS"
  for line in "${left_out[@]}"; do
    printf 'Left out, since this machine cannot have what it needs: %s\n' "$line"
  done
  cat "$closing"
  rm "$closing" "$printed"
}
trap report EXIT
