// An agent that reads its terminal as harnesses do: raw, byte by byte. What it got is in the file it is given.
//
//   node raw-agent.ts <file> [bracketed]
import { appendFileSync } from 'node:fs'

const [file = '', mode] = process.argv.slice(2)
process.stdin.setRawMode(true)
process.stdin.on('data', (bytes) => appendFileSync(file, bytes))
process.stdout.write(mode === 'bracketed' ? '\u001b[?2004hready\r\n' : 'ready\r\n')
