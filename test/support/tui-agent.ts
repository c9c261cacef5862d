// An agent with a screen like those of the real ones: it asks for trust, shows a prompt, says that it works, asks for
// permission. Instructions: `work <ms>`, `ask <command>`, `late <ms> <instruction>`, which it stands still before; anything
// else is echoed. Enter right behind a backslash begins a line, as the real ones have it.
//
//   node tui-agent.ts [--deaf <ms>]       keys that come in the first <ms> are lost, though the prompt is there
//   node tui-agent.ts --swallow <count>   the first <count> Enters behind a text are lost
//   node tui-agent.ts --newline <count>   the first <count> Enters behind a text begin a line of it
//   node tui-agent.ts --late <ms>         its question of trust takes arrows, from no to yes, and is read after <ms> only
import { setTimeout as sleep } from 'node:timers/promises'

const deafMs = process.argv[2] === '--deaf' ? Number(process.argv[3]) : 0
let newlines = process.argv[2] === '--newline' ? Number(process.argv[3]) : 0
let swallows = process.argv[2] === '--swallow' ? Number(process.argv[3]) : 0
const lateMs = process.argv[2] === '--late' ? Number(process.argv[3]) : 0
const DRAW_MS = 200
const ARROW = '\u001b['
const ERASE = '\u007f'
const RULE = '─'.repeat(60)
const waiting: ((key: string) => void)[] = []
let typed = ''
let deaf = deafMs > 0

process.stdin.setRawMode(true)
process.stdin.setEncoding('utf8')
if (lateMs === 0) process.stdin.on('data', onKeys)

function onKeys(keys: string) {
  if (!deaf) for (const key of keys) (waiting.shift() ?? onKey)(key)
}

const say = (...lines: string[]) => process.stdout.write(`${lines.join('\r\n')}\r\n`)
const key = () => new Promise<string>((resolve) => waiting.push(resolve))
const clear = () => process.stdout.write('\u001b[2J\u001b[3J\u001b[H')

function prompt() {
  typed = ''
  process.stdout.write(`${RULE}\r\n❯ `)
}

function onKey(pressed: string) {
  if (pressed === '\r' && typed !== '' && swallows > 0) swallows -= 1
  else if (pressed === '\r' && (typed.endsWith('\\') || (typed !== '' && newlines > 0))) {
    newlines -= 1
    typed += '\n'
    process.stdout.write('\r\n\r\n  ? for shortcuts\u001b[A\u001b[3G')
  } else if (pressed === ERASE && typed.endsWith('\n')) {
    typed = typed.slice(0, -1)
    process.stdout.write(`\u001b[A\u001b[${typed.length + 3}G`)
  } else if (pressed === '\r') void obey(typed)
  else if (pressed === ERASE) {
    if (typed === '') return
    typed = typed.slice(0, -1)
    process.stdout.write('\b \b')
  } else {
    typed += pressed
    process.stdout.write(pressed)
  }
}

/** Arrows go round; an Enter on the wrong one ends it. */
async function arrows() {
  const options = ['No, exit', 'Yes, I trust this folder']
  let chosen = 0
  const draw = () => {
    clear()
    say(' Is this a project you created or one you trust?', '')
    say(...options.map((option, place) => ` ${place === chosen ? '❯' : ' '} ${option}`), '', ' Enter to confirm')
  }
  draw()
  await sleep(lateMs)
  let read = ''
  process.stdin.on('data', (keys: string) => {
    read += keys
  })
  // It draws after each key, slowly.
  for (; !read.startsWith('\r'); await sleep(DRAW_MS)) {
    if (!read.startsWith(ARROW)) continue
    read = read.slice(ARROW.length + 1)
    chosen = (chosen + 1) % options.length
    draw()
  }
  if (chosen === 0) process.exit(1)
  process.stdin.removeAllListeners('data').on('data', onKeys)
  clear()
}

async function obey(text: string) {
  const [, ms, rest] = /^late (\d+) (.*)$/.exec(text) ?? []
  if (rest !== undefined) {
    // As one that has no processor: what was typed stands there.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(ms))
    return obey(rest)
  }
  clear()
  if (text.startsWith('work ')) {
    say('✻ Pondering… (esc to interrupt)')
    await sleep(Number(text.slice(5)))
    clear()
  } else if (text.startsWith('ask ')) {
    say(RULE, ' Bash command', '', `   ${text.slice(4)}`, '', ' Do you want to proceed?', ' ❯ 1. Yes')
    say("   2. Yes, and don't ask again", '   3. No', '')
    let answer = await key()
    while (answer === ERASE) answer = await key()
    clear()
    say(`chosen ${answer}`)
  } else say(`heard ${text}`)
  prompt()
}

if (lateMs > 0) await arrows()
else if (deafMs === 0) {
  say(' Do you trust the files in this folder?', '', ' ❯ 1. Yes, proceed', '   2. No, exit')
  await key()
  clear()
}
prompt()
if (deaf) {
  await sleep(deafMs)
  deaf = false
}
