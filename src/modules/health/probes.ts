/** Can a provider or tool of this host be used: one probe each, which looks and never changes anything. */
import { findBinary } from '../../kernel/processes.ts'
import { LOGINS, type Observation, type ProbeHost } from './logins.ts'

export interface Probe {
  readonly name: string
  readonly kind: 'provider' | 'tool'
  readonly display_name: string
  run(signal: AbortSignal): Promise<Observation>
}

/** A provider to probe, as the providers module lists its presets. */
export interface ProbeTarget {
  readonly name: string
  readonly display_name: string
  /** A program's name, or its absolute path. */
  readonly command: string
}

/** In the order of lists; `hint` says how to get the tool. */
export const TOOLS = {
  github_cli: { display_name: 'GitHub CLI', command: 'gh', hint: 'install the GitHub CLI: https://cli.github.com' },
  git: {
    display_name: 'Git',
    command: 'git',
    hint: 'git is not installed: `apt install git`, `dnf install git` or `brew install git`',
  },
} as const

/** One probe per provider, then one per tool. */
export function createProbes(targets: readonly ProbeTarget[], host: ProbeHost): readonly Probe[] {
  const tools = Object.entries(TOOLS).map(([name, tool]) => createProbe('tool', { name, ...tool }, host))
  return [...targets.map((target) => createProbe('provider', target, host)), ...tools]
}

function createProbe(kind: Probe['kind'], target: ProbeTarget, host: ProbeHost): Probe {
  const { name, display_name, command } = target
  const login = LOGINS.get(name)
  return {
    name,
    kind,
    display_name,
    async run(signal) {
      const binary = await findBinary(command, host.env)
      if (binary === undefined) return { status: 'not_installed', detail: absence(command) }
      if (login === undefined) return { status: 'configured' }
      const variable = login.variables.find((candidate) => !['', '0', 'false'].includes(host.env[candidate] ?? ''))
      if (variable !== undefined) return { status: 'configured', detail: `by ${variable}` }
      return login.look({ ...host, binary, signal })
    },
  }
}

const absence = (command: string) =>
  command.includes('/') ? `${command} is not a program` : `${command} is neither on PATH nor in the usual directories`
