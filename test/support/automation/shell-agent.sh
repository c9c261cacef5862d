#!/bin/sh
# An agent without a model, in a session like any other. It takes what is on its hook with the command line, runs what
# stands behind `$ ` at the begin of a line of the description, and closes the bead: pass where that exits with 0, else fail with
# the last line that was said. `key=value` on descriptor 3 becomes an output. $BEAD is the bead, $ATTEMPT the number of the
# attempt, $TOLD a file with the whole description. Where that says nothing of the kind, it runs the file $HABITS, which knows the
# step by $STEP.
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# An interrupt ends what it does, and not the agent.
trap 'echo interrupted' INT
TOLD=$scratch/told
export TOLD

taken='{{ action }} {{ bead_id }} {{ bead.metadata["svc.attempt"] | default: 1 }} {{ bead.metadata["svc.step_id"] }}
{{ bead.description }}'

while :; do
  if ! svcctl bead hook --claim -o template="$taken" >"$TOLD"; then
    sleep 1
    continue
  fi
  read -r action BEAD ATTEMPT STEP <"$TOLD"
  export BEAD ATTEMPT STEP
  if [ "$action" != work ]; then
    svcctl bead ready --wait 20s -o name >"$scratch/ready" 2>&1
    # What is ready may be for others.
    [ -s "$scratch/ready" ] && sleep 0.3
    continue
  fi
  echo "took $BEAD"
  sed -n 's/^ *\$ //p' "$TOLD" >"$scratch/script"
  [ -s "$scratch/script" ] || [ ! -f "${HABITS:-}" ] || cp "$HABITS" "$scratch/script"
  : >"$scratch/outputs"
  sh "$scratch/script" 3>"$scratch/outputs" >"$scratch/said" 2>&1 </dev/null
  code=$?
  if [ "$code" = 0 ]; then set -- --outcome pass; else set -- --outcome fail --failure-reason "$(tail -n 1 "$scratch/said")"; fi
  while IFS= read -r line; do set -- "$@" --result "$line"; done <"$scratch/outputs"
  # Where the script has closed it in its own way this says the same again, or is refused.
  svcctl bead close "$BEAD" "$@" -q && echo "closed $BEAD: exit $code"
done
