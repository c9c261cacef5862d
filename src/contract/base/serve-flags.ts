/** What `svcctl serve` takes: its help and its completion are made of this. */
export interface ServeFlag {
  readonly flag: string
  /** What its value is called; absent where it takes none. */
  readonly value?: string
  readonly does: string
  readonly choices?: readonly string[]
}

export const LOG_LEVELS = ['error', 'warn', 'info', 'debug', 'silent'] as const
export const DEFAULT_PORT = 8372

export const SERVE_FLAGS: readonly ServeFlag[] = [
  { flag: '--home', value: 'DIR', does: 'where it keeps its state (SVC_HOME, default ~/.svc)' },
  { flag: '--bind', value: 'ADDRESS', does: 'address to listen on (SVC_BIND, default 127.0.0.1)' },
  { flag: '--port', value: 'PORT', does: `port to listen on, 0 for any free one (SVC_PORT, default ${DEFAULT_PORT})` },
  {
    flag: '--log-level',
    value: 'LEVEL',
    does: `${LOG_LEVELS.join(', ')} (SVC_LOG_LEVEL, default info)`,
    choices: LOG_LEVELS,
  },
  { flag: '--auth', does: 'ask for a bearer token on a loopback address too (SVC_AUTH=true)' },
]
