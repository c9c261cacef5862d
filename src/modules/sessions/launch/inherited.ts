/** What agents and their commands have of the supervisor's own environment. */
import { glob } from '../../../kernel/glob.ts'
import { type Environment, isPlain } from '../../../kernel/processes.ts'
import type { ProviderView, SessionsView } from '../record/config-view.ts'

/**
 * Names that belong to the terminal that the supervisor was started in, to the supervisor itself, or to a build machine:
 * a harness that reads `CI` takes its terminal for a log that nobody answers (gemini 0.61.0 ends with 42).
 */
const NOT_PASSED_ON =
  /^(?:SVC_|TMUX$|TMUX_PANE$|STY$|TERM$|COLUMNS$|LINES$|NODE_OPTIONS$|NODE_CHANNEL_FD$|npm_|INIT_CWD$|CI$|CONTINUOUS_INTEGRATION$|GITHUB_ACTIONS$)/

/**
 * Everything but what `env_deny` matches. Where `inherit_env` is a list, only what it matches and what every program
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
    !NOT_PASSED_ON.test(name) &&
    !denied.some((one) => one.matches(name)) &&
    allowed.every((globs) => name === 'PATH' || isPlain(name) || globs.some((one) => one.matches(name)))
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && passes(entry[0])),
  )
}
