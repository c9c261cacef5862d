// Draws the screens of a harness and obeys keys as they do. `dialog <n>` asks; `dialog <n> at paste` asks in the moment
// when the next message is pasted; anything else is heard. What was chosen and heard is in files of the work directory,
// `mark` is there once a harmful option was.
//
//   node dialog-agent.ts <program>
import { appendFileSync, writeFileSync } from 'node:fs'
import { type Dialog, SKINS } from './dialog-skins.ts'

const skin = SKINS.find(({ program }) => program === process.argv[2])
if (skin === undefined) throw new Error('there is no such skin')

const PASTE_BEGINS = '\u001b[200~'
const PASTE_ENDS = '\u001b[201~'
// biome-ignore lint/suspicious/noControlCharactersInRegex: keys begin so.
const KEYS = /\x1b\[20[01]~|\x1b\[[A-D]|[\s\S]/gu
let said: string[] = ['A program that draws.']
let input = ''
let dialog: Dialog | undefined
let ambush: Dialog | undefined
let cursor = 0
let word = ''
let pasting = false

process.stdin.setRawMode(true)
process.stdin.setEncoding('utf8')
process.stdin.on('data', (text: string) => {
  for (const [key] of text.matchAll(KEYS)) press(key)
  draw()
})
process.stdout.write('\u001b[?2004h')
draw()

function press(key: string) {
  if (ambush !== undefined) {
    open(ambush)
    ambush = undefined
  }
  if (key === PASTE_BEGINS) pasting = true
  else if (key === PASTE_ENDS) pasting = false
  else if (dialog !== undefined) {
    if (!pasting) choose(dialog, key)
  } else edit(key)
}

function open(asked: Dialog) {
  dialog = asked
  cursor = asked.harmful
  word = ''
}

function choose(asked: Dialog, key: string) {
  const last = asked.options.length - 1
  if (key === '\u001b[B' || key === '\u001b[C') cursor = Math.min(cursor + 1, last)
  else if (key === '\u001b[A' || key === '\u001b[D') cursor = Math.max(cursor - 1, 0)
  else if (key === '\u001b' || key === '\u0003') close('cancelled')
  else if (asked.line === true) {
    if (key !== '\r') word += key
    else
      take(
        asked,
        word === '' ? asked.harmful : asked.options.findIndex((one) => one.toLowerCase() === word.toLowerCase()),
      )
  } else if (key === '\r') take(asked, cursor)
  else if (asked.digits === true && Number(key) >= 1 && Number(key) <= last + 1) take(asked, Number(key) - 1)
}

function take(asked: Dialog, index: number) {
  if (index === asked.harmful) writeFileSync('mark', 'harm was done')
  close(asked.options[index] ?? 'nothing')
}

function close(chosen: string) {
  appendFileSync('chosen', `${chosen}\n`)
  said = [...said, `● ${chosen}`]
  dialog = undefined
}

function edit(key: string) {
  if (key === '\u007f') input = input.slice(0, -1)
  else if (key === '\r' && !pasting) {
    if (input !== '') obey(input)
    input = ''
  } else if (key >= ' ') input += key
}

function obey(text: string) {
  const [, number, when] = /^dialog (\d+)( at paste)?/.exec(text) ?? []
  const asked = skin?.dialogs[Number(number)]
  if (asked === undefined) appendFileSync('heard', `${text}\n`)
  else if (when === undefined) open(asked)
  else ambush = asked
  said = [...said.slice(-8), `> ${text}`]
}

function draw() {
  const lines = dialog === undefined ? (skin?.drawPrompt(input) ?? []) : drawDialog(dialog)
  process.stdout.write(`\u001b[2J\u001b[3J\u001b[H${[...said, '', ...lines].join('\r\n')}`)
}

function drawDialog({ above, options, draw: drawOption, below = [], row, line }: Dialog): readonly string[] {
  if (line === true) return [`${above.join(' ')} ${word}`]
  const drawn = options.map((option, index) => drawOption(option, index, index === cursor))
  return [...above, ...(row === true ? [drawn.join('  ')] : drawn), ...below]
}
