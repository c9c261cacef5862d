// An agent with a screen like those of the real ones: it asks for trust, shows a prompt, says that it works, asks for
// permission. Instructions: `work <ms>`, `ask <command>`; anything else is echoed.
//
//   node tui-agent.ts [--deaf <ms>]       keys that come in the first <ms> are lost, though the prompt is there
//   node tui-agent.ts --swallow <count>   the first <count> Enters behind a text are lost
import { setTimeout as sleep } from 'node:timers/promises'

const deafMs = process.argv[2] === '--deaf' ? Number(process.argv[3]) : 0
let swallows = process.argv[2] === '--swallow' ? Number(process.argv[3]) : 0
const RULE = '─'.repeat(60)
const waiting: ((key: string) => void)[] = []
let typed = ''
let deaf = deafMs > 0

process.stdin.setRawMode(true)
process.stdin.setEncoding('utf8')
process.stdin.on('data', (keys: string) => {
  if (!deaf) for (const key of keys) (waiting.shift() ?? onKey)(key)
})

const say = (...lines: string[]) => process.stdout.write(`${lines.join('\r\n')}\r\n`)
const key = () => new Promise<string>((resolve) => waiting.push(resolve))
const clear = () => process.stdout.write('\u001b[2J\u001b[3J\u001b[H')

function prompt() {
  typed = ''
  process.stdout.write(`${RULE}\r\n❯ `)
}

function onKey(pressed: string) {
  if (pressed === '\r' && typed !== '' && swallows > 0) swallows -= 1
  else if (pressed === '\r') void obey(typed)
  else if (pressed === '\u007f') {
    typed = typed.slice(0, -1)
    process.stdout.write('\b \b')
  } else {
    typed += pressed
    process.stdout.write(pressed)
  }
}

async function obey(text: string) {
  clear()
  if (text.startsWith('work ')) {
    say('✻ Pondering… (esc to interrupt)')
    await sleep(Number(text.slice(5)))
    clear()
  } else if (text.startsWith('ask ')) {
    say(RULE, ' Bash command', '', `   ${text.slice(4)}`, '', ' Do you want to proceed?', ' ❯ 1. Yes')
    say("   2. Yes, and don't ask again", '   3. No', '')
    const answer = await key()
    clear()
    say(`chosen ${answer}`)
  } else say(`heard ${text}`)
  prompt()
}

if (deafMs === 0) {
  say(' Do you trust the files in this folder?', '', ' ❯ 1. Yes, proceed', '   2. No, exit')
  await key()
  clear()
}
prompt()
if (deaf) {
  await sleep(deafMs)
  deaf = false
}
