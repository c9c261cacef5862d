/** Codex, as a harness. */
import {
  BY_ESCAPE,
  COMMON,
  choice,
  flagged,
  type Harness,
  MOVING_SIGNS,
  models,
  OWN_DEFAULT,
  permissionModes,
  select,
  unset,
} from './harness.ts'
import { codexHash, type HarnessHooks, hookGroups, snakeCase } from './hooks.ts'

/**
 * Codex 0.169.0: `-c hooks.<Event>=…` adds hooks beside those of a person's `config.toml`; they run only where their
 * hash is trusted, which `-c hooks.state` says for these very hooks (`hooks/list` of its app-server, run here).
 * `PermissionRequest` comes before its own dialog, and an answer makes that superfluous.
 */
const hooks: Pick<HarnessHooks, 'events' | 'permissionSec'> = {
  events: {
    SessionStart: {},
    UserPromptSubmit: { activity: 'in-turn', used: true },
    PermissionRequest: { permission: true, used: true },
    Stop: { activity: 'idle', used: true },
  },
  permissionSec: 600,
}
/** Where codex says that hooks of its command line come from. */
const OF_FLAGS = '/<session-flags>/config.toml'

export const codex: Harness = {
  hooks: {
    ...hooks,
    lay: ({ command, args }) => {
      if (args.some((word) => /^hooks[.=]/.test(word))) return undefined
      const groups = Object.entries(hookGroups(hooks, command)).flatMap(([event, [group]]) =>
        group === undefined ? [] : [{ event, group }],
      )
      const trusted = groups.map(
        ({ event, group }) =>
          `${JSON.stringify(`${OF_FLAGS}:${snakeCase(event)}:0:0`)}={trusted_hash=${JSON.stringify(codexHash(event, group))}}`,
      )
      const said = groups.flatMap(({ event, group }) =>
        group.hooks.map(
          ({ timeout }) =>
            `hooks.${event}=[{hooks=[{type="command",command=${JSON.stringify(command)},timeout=${timeout}}]}]`,
        ),
      )
      return { files: [], args: [...said, `hooks.state={${trusted.join(',')}}`].flatMap((one) => ['-c', one]), env: {} }
    },
  },
  preset: {
    ...COMMON,
    display_name: 'Codex',
    command: 'codex',
    prompt_mode: 'arg',
    ready_prompt_prefix: '› ',
    ready_delay_ms: 3000,
    supports_acp: true,
    // The adapter is a package of its own: @agentclientprotocol/codex-acp, which followed @zed-industries/codex-acp.
    acp_command: 'codex-acp',
    acp_args: [],
    resume_flag: 'resume',
    resume_style: 'subcommand',
    options_schema: [
      permissionModes([
        OWN_DEFAULT,
        {
          ...choice('suggest', ['--ask-for-approval', 'on-request', '-c', 'sandbox_mode=read-only']),
          acp_mode: 'read-only',
        },
        {
          ...choice('auto-edit', ['--ask-for-approval', 'on-request', '-c', 'sandbox_mode=workspace-write']),
          acp_mode: 'workspace-write',
        },
        {
          ...choice('full-auto', ['--ask-for-approval', 'never', '-c', 'sandbox_mode=workspace-write']),
          acp_mode: 'agent',
        },
        {
          ...choice('unrestricted', ['--dangerously-bypass-approvals-and-sandbox']),
          flag_aliases: [['--yolo']],
          acp_mode: 'agent-full-access',
        },
      ]),
      models('--model', ['gpt-6.1-sol', 'gpt-6-sol', 'gpt-6-luna']),
      select('effort', '', [
        unset,
        ...['minimal', 'low', 'medium', 'high', 'xhigh'].map((level) =>
          choice(level, ['-c', `model_reasoning_effort=${level}`]),
        ),
      ]),
      select('sandbox', '', [unset, ...flagged('--sandbox', ['read-only', 'workspace-write', 'danger-full-access'])]),
    ],
  },
  screen: {
    busy: MOVING_SIGNS,
    placeholders: ['ask codex'],
    startupDialogs: [
      { id: 'trust', match: ['do you trust the contents of this directory', 'yes, continue'], choose: 'yes' },
      { id: 'trust', match: ['allow codex to work in this folder without asking for approval'], choose: 'yes' },
      { id: 'update', match: ['update available', 'update now', 'skip'], choose: 'skip' },
    ],
  },
  interrupt: BY_ESCAPE,
  sources: [
    { version: '0.169.0', where: 'npm @openai/codex: codex --help, run' },
    { version: '2.6.0', where: 'npm @agentclientprotocol/codex-acp: run over ACP, modes and logins as it tells them' },
  ],
  // Rollouts: a count after each answer of the model, told again with every change of its rate limits; the running total
  // tells one from the next.
  usage: {
    mark: '"token_count"',
    where: { 'payload.type': 'token_count' },
    id: 'payload.info.total_token_usage.total_tokens',
    modelLine: { mark: '"turn_context"', model: 'payload.model' },
    at: 'timestamp',
    input: ['payload.info.last_token_usage.input_tokens'],
    output: ['payload.info.last_token_usage.output_tokens'],
    cache_read: 'payload.info.last_token_usage.cached_input_tokens',
    inputHasCache: true,
  },
}
