/** What a prompt template sees of an agent and its city; the same for the preview and for a session. */
import type { EffectiveAgent, EffectiveConfig } from '../compose/effective.ts'
import type { PromptData } from './prompt.ts'
import { type FilterFacts, renderTemplate } from './templates.ts'

export function promptData(config: EffectiveConfig, agent: EffectiveAgent): PromptData {
  const rig = config.rigs.find(({ name }) => name === agent.dir)
  const provider = config.providers[agent.provider]
  return {
    CityRoot: config.dir,
    CityName: config.name,
    AgentName: agent.identity,
    TemplateName: agent.identity,
    BindingName: agent.binding,
    BindingPrefix: agent.binding === '' ? '' : `${agent.binding}.`,
    RigName: agent.dir,
    Rig: agent.dir,
    RigRoot: rig?.path ?? '',
    WorkDir: agent.work_dir ?? rig?.path ?? config.dir,
    IssuePrefix: rig?.prefix ?? config.prefix,
    Branch: '',
    DefaultBranch: rig?.default_branch ?? '',
    ConfigDir: agent.config_dir,
    WorkQuery: agent.work_query ?? '',
    AssignedInProgressQuery: '',
    AssignedReadyQuery: '',
    RoutedPoolQuery: '',
    ProviderKey: agent.provider,
    ProviderDisplayName: provider?.resolved.display_name ?? agent.provider,
    InstructionsFile: provider?.resolved.instructions_file ?? 'AGENTS.md',
  }
}

export function filterFacts(config: EffectiveConfig): FilterFacts {
  return {
    commandName: 'svcctl',
    sessionName: (name) => {
      const agent = config.agents.find(({ identity }) => identity === name)
      return agent === undefined ? undefined : sessionName(config, agent)
    },
  }
}

/** Runtime name of the agent's session, by `[workspace] session_template`. */
function sessionName(config: EffectiveConfig, agent: EffectiveAgent): string {
  const template = config.workspace.session_template ?? '{{ Agent }}'
  const names = {
    City: config.name,
    Agent: plainName(agent.identity),
    Dir: plainName(agent.dir),
    Name: plainName(agent.base_name),
  }
  return renderTemplate(template, names, new Map(), { commandName: 'svcctl', sessionName: () => undefined })
}

/** Only what every runtime takes in a name. */
const plainName = (name: string): string => name.replaceAll('/', '--').replaceAll(/[^A-Za-z0-9_-]/g, '-')
