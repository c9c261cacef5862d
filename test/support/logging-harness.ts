/** A program that logs like Claude Code: a conversation with one sub-agent, which has answered. */
export const LOGGING_HARNESS = `#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = --session-id ] && id=$2; shift; done
logs="$HOME/.claude/projects/$(pwd | sed 's/[^A-Za-z0-9]/-/g')"
mkdir -p "$logs/$id/subagents"
said='"message":{"role":"assistant","content":[{"type":"text","text":"done"}]}'
echo '{"type":"assistant","uuid":"u1","sessionId":"'$id'",'$said'}' > "$logs/$id.jsonl"
echo '{"sessionId":"'$id'","parentToolUseId":"tool-1",'$said'}' > "$logs/$id/subagents/agent-helper.jsonl"
echo '❯ '
exec cat
`
