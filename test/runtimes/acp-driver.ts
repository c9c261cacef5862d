// A supervisor to be killed: starts the agent of `<spec file>` through the acp runtime, delivers `<text>`, prints `pending`
// when the agent asks something, and then holds on to it until it is killed.
import { readFileSync } from 'node:fs'
import { newAcpRuntime, patience } from '../support/acp-run.ts'

// A supervisor has a server; nothing else here keeps a process alive.
setInterval(() => {}, 60_000)
const [specFile = '', text = ''] = process.argv.slice(2)
const agent = await newAcpRuntime().start(JSON.parse(readFileSync(specFile, 'utf8')), patience())
agent.on((event) => event.type === 'pending' && process.stdout.write('pending\n'))
await agent.deliver({ seq: 1, id: 'before-the-crash', text }, patience())
