/**
 * A program that plays Claude Code as far as its hooks go: it takes the same flags, draws a prompt, and runs the hooks of
 * the settings that it was started with. What it does is written into its FIFO, a line each.
 */
import assert from 'node:assert/strict'
import { closeSync, constants, existsSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { descendantsOf, kill } from './city-processes.ts'
import { eventually } from './http.ts'
import type { SessionApi } from './session-api.ts'

const SCRIPT = `#!/bin/sh
dir=$(dirname "$0")/puppets/$SVC_SESSION_ID
mkdir -p "$dir"
echo "$@" >> "$dir/started"
while [ $# -gt 0 ]; do
  case $1 in
    --settings) settings=$2 ;;
    --session-id) id=$2 ;;
    --resume) id=$2
      if [ -e "$dir/forgot-$id" ]; then
        echo "No conversation found with session ID: $id"
        exit 1
      fi ;;
  esac
  shift
done
hook=$(sed -n 's/^.*"command": "\\(.*\\)",*$/\\1/p' "$settings" 2>/dev/null | head -1)
tell() { printf '{"hook_event_name":"%s","session_id":"%s","transcript_path":"/logs/%s.jsonl"%s}' "$1" "$id" "$id" "$2" | sh -c "$hook"; }
ask() {
  tell PermissionRequest ',"tool_name":"Bash","tool_input":{"command":"'"$2"'"}' > "$dir/verdict-$1.part"
  mv "$dir/verdict-$1.part" "$dir/verdict-$1"
}
[ -p "$dir/do" ] || mkfifo "$dir/do"
exec 3<> "$dir/do"
printf '\\342\\235\\257 '
while read -r what name rest <&3; do
  case $what in
    tell) tell "$name" "$rest" ;;
    ask) ask "$name" "$rest" & echo $! > "$dir/asking-$name" ;;
    say) echo "$name $rest" ;;
  esac
  echo "$what $name" >> "$dir/done"
done
`

export const PUPPET = `[providers.puppet]
base = "builtin:claude"
command = "./puppet.sh"
prompt_mode = "none"
ready_delay_ms = 0
`

export const writePuppet = (city: SessionApi): void => city.write('puppet.sh', SCRIPT, 0o755)

/** The puppet of one session. */
export class Puppet {
  readonly #dir: string

  constructor(city: SessionApi, id: string) {
    this.#dir = join(city.dir, 'puppets', id)
  }

  /** Done when it says so. */
  async do(line: string): Promise<void> {
    const before = this.lines('done').length
    const fifo = await eventually('the puppet listens', () =>
      existsSync(join(this.#dir, 'do')) ? join(this.#dir, 'do') : undefined,
    )
    const file = openSync(fifo, constants.O_WRONLY)
    writeSync(file, `${line}\n`)
    closeSync(file)
    await eventually(`the puppet did ${line}`, () => (this.lines('done').length > before ? true : undefined))
  }

  /** It does not know this conversation any more. */
  forget(conversation: string): void {
    writeFileSync(join(this.#dir, `forgot-${conversation}`), '')
  }

  verdict(name: string): Promise<unknown> {
    return eventually(`the verdict ${name}`, () => {
      const path = join(this.#dir, `verdict-${name}`)
      if (!existsSync(path)) return undefined
      const text = readFileSync(path, 'utf8')
      return { said: text === '' ? undefined : JSON.parse(text) }
    })
  }

  /** Ends the hook as a harness does whose person has answered by himself. */
  async killHook(name: string): Promise<void> {
    const pid = await eventually('the hook runs', () => this.lines(`asking-${name}`)[0])
    const hook = descendantsOf(Number(pid))
    assert.ok(hook.length > 0)
    // The end of one may end the others before their turn.
    for (const member of hook) kill(member)
  }

  /** What it was started with as it began for that time; it may run before it has said so. */
  started(time: number): Promise<string> {
    return eventually(`the puppet has begun for the ${time}. time`, () => this.lines('started')[time - 1])
  }

  lines(file: string): readonly string[] {
    const path = join(this.#dir, file)
    return existsSync(path)
      ? readFileSync(path, 'utf8')
          .split('\n')
          .filter((line) => line !== '')
      : []
  }
}
