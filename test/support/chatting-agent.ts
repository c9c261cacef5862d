// An agent at a terminal that is told of a chat, and answers each question there as it was told to, until that is taken.
//
//   node chatting-agent.ts <home of svcctl>
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'

const [home = ''] = process.argv.slice(2)
process.stdout.write('> ')
let told = ''
for await (const line of createInterface({ input: process.stdin })) {
  told += `${line}\n`
  if (told.includes('What you write here is not seen there')) {
    const transcript = /\bcv-[0-9a-f]{32}\b/.exec(told)?.[0] ?? ''
    const session = /"session_id": "([^"]+)"/.exec(told)?.[1] ?? ''
    for (const [, question = ''] of told.matchAll(/\| mayor: question (\w+)/g))
      await answer(transcript, session, question)
    told = ''
  }
  process.stdout.write('> ')
}

/** The same key each time: however often it is told of a question, it answers once. */
async function answer(transcript: string, session: string, question: string): Promise<void> {
  for (;;) {
    try {
      const { url, token } = JSON.parse(readFileSync(join(home, 'endpoint.json'), 'utf8'))
      const { status } = await fetch(`${url}/v0/city/alpha/transcripts/${transcript}/entries?wait=0s`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-svc-request': 'agent',
          'idempotency-key': `answer-${question}`,
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify({ session_id: session, text: `answer to ${question}` }),
      })
      if (status === 200) return
    } catch {
      // It is between two lives.
    }
    await pause(100)
  }
}
