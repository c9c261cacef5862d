/** What agents and their commands have of the supervisor's own environment. */
import { glob } from '../../../kernel/glob.ts'
import { type Environment, isPlain } from '../../../kernel/processes.ts'
import type { ProviderView, SessionsView } from '../record/config-view.ts'
import { isOfStartingShell } from './starting-shell.ts'

/**
 * Everything but what belongs to the starting shell and what `env_deny` matches. Where `inherit_env` is a list, only what it matches and what every program
 * needs; city and provider both have a say, so that the provider of a pack cannot widen what the city narrows.
 */
export function inheritedEnvironment(
  env: Environment,
  { env_deny, inherit_env }: Pick<SessionsView['session'], 'env_deny' | 'inherit_env'>,
  provider: Pick<ProviderView, 'inherit_env'>,
): Readonly<Record<string, string>> {
  const denied = (env_deny ?? []).map((pattern) => glob(pattern))
  const lists = [inherit_env, provider.inherit_env].filter((list) => typeof list === 'object')
  const allowed = lists.map((list) => list.map((pattern) => glob(pattern)))
  const passes = (name: string) =>
    !isOfStartingShell(name) &&
    !denied.some((one) => one.matches(name)) &&
    allowed.every((globs) => name === 'PATH' || isPlain(name) || globs.some((one) => one.matches(name)))
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && passes(entry[0])),
  )
}

/** What a program needs to write more than ASCII without colours; systemd and cron set none of it. */
export function terminalDefaults(env: Environment): Readonly<Record<string, string>> {
  const hasLocale = ['LANG', 'LC_ALL', 'LC_CTYPE'].some((name) => (env[name] ?? '') !== '')
  // macOS has no C.UTF-8 before version 15.
  const lang = process.platform === 'darwin' ? 'en_US.UTF-8' : 'C.UTF-8'
  return { ...(hasLocale ? {} : { LANG: lang }), TERM: 'xterm-256color', COLORTERM: env['COLORTERM'] || 'truecolor' }
}
