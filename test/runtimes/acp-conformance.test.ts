import { systemClock } from '../../src/kernel/clock.ts'
import { createAcpRuntime } from '../../src/runtimes/acp.ts'
import { ACP_AGENT } from '../support/acp-run.ts'
import { runtimeConformance } from './conformance.ts'

const isPrompt = (line: string) => line.startsWith('{"svc":{"prompt"')

/** The sockets go with the city. */
const make = (city: string) =>
  createAcpRuntime({ clock: systemClock, env: { ...process.env, XDG_RUNTIME_DIR: city }, home: city })

runtimeConformance('an agent behind ACP', make, {
  launch: { command: process.execPath, args: [ACP_AGENT], io: 'pipes', acp: { handshakeTimeoutMs: 30_000 } },
  say: (text) => `say ${text}`,
  exit: (code) => `crash ${code}`,
  flood: (bytes) => `flood ${bytes}\nsay end of flood`,
  longLine: (bytes) => `long ${bytes}\nsay end of line`,
  oddBytes: 'nonsense\nsay end of bytes',
  stubborn: 'hang-exit\nchild\nsay child of',
  busy: 'say busy\nstall',
  said: (log) =>
    log
      .split('\n')
      .filter((line) => !isPrompt(line))
      .join('\n'),
})
