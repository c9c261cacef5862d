/** What is known of a harness, for who wants to know before a session is started on it. Nothing here is configured, so nothing is secret. */
import type { HarnessFacts } from '../contract/providers.ts'
import { findHarness } from './all.ts'
import type { Harness, ProviderPreset } from './harness.ts'
import type { HarnessHooks } from './hooks.ts'

/** Undefined for a program that nothing is known of. */
export function factsOf(name: string): HarnessFacts | undefined {
  const harness = findHarness(name)
  return harness === undefined ? undefined : told(name, harness)
}

function told(name: string, { preset, screen, hooks, usage, sources }: Harness): HarnessFacts {
  const option = (key: string) => preset.options_schema.find((one) => one.key === key)
  const modes = option('permission_mode')
  return {
    name,
    // Without a name of our own, and without hooks that tell its own, nobody knows what to resume.
    resumable: preset.resume_flag !== undefined && (preset.session_id_flag !== undefined || hooks?.lay !== undefined),
    names_conversations: preset.session_id_flag !== undefined,
    ...(preset.supports_acp ? { acp: acpOf(preset) } : {}),
    ...(hooks === undefined ? {} : { hooks: hooksOf(hooks) }),
    screen: {
      ...(preset.ready_prompt_prefix === undefined ? {} : { prompt: preset.ready_prompt_prefix }),
      busy: [...new Set(screen.busy.map(({ words }) => words))],
      startup_dialogs: [...new Set(screen.startupDialogs.map(({ id }) => id))],
      approval: screen.approval !== undefined,
    },
    counts_usage: usage !== undefined,
    ...(modes === undefined
      ? {}
      : { permission_mode: { default: modes.default, choices: modes.choices.map(({ value }) => value) } }),
    models: (option('model')?.choices ?? []).map(({ value }) => value).filter((value) => value !== ''),
    sources: [...sources],
  }
}

const acpOf = ({ command, acp_command, args, acp_args }: ProviderPreset) => ({
  command: acp_command ?? command,
  args: [...(acp_args ?? args)],
})

/** Stands for the directory of a run. */
const RUN = '<run>'

function hooksOf({ events, permissionSec, lay }: HarnessHooks) {
  const laid = lay?.({ directory: RUN, command: 'svcctl session report', args: [], env: {} })
  return {
    events: Object.keys(events),
    permission: permissionSec !== undefined,
    files: (laid?.files ?? []).map(({ path }) => path.replace(`${RUN}/`, '')),
    flags: [...new Set((laid?.args ?? []).filter((word) => word.startsWith('-')))],
    env: Object.keys(laid?.env ?? {}),
  }
}
