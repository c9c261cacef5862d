# What is open, waits for nothing and was not touched for SVC_VAR_DAYS days gets the label `stale`, and is told of; what has
# the label and is being done loses it. Run again it changes nothing.
set -eu
old="is:ready AND assignee=none AND updated<${SVC_VAR_DAYS:-30}d AND NOT label=stale AND type!=gate,molecule,convoy"
svcctl bead query "$old" --paginate -o template='stale: {{ id }} {{ title }} (untouched since {{ updated_at }})'
svcctl bead label add stale --query "$old" -q -o name >/dev/null
svcctl bead label remove stale --query "label=stale AND status=in_progress" -q -o name >/dev/null
