/** What templates of prompts and of fields may name: the one list, which the loader checks against and the reference shows. */

/** Variables of every prompt. */
export const PROMPT_VARIABLES = {
  CityRoot: 'Directory of the city.',
  CityName: 'Name of the city.',
  AgentName: 'Identity of the agent: `[<rig>/][<binding>.]<name>`.',
  TemplateName: 'The same; kept for prompts that use this name.',
  BindingName: 'Name under which the pack of the agent is imported; empty for an agent of the city.',
  BindingPrefix: 'The same with a point behind it; empty for an agent of the city.',
  RigName: 'Rig of the agent; empty for an agent of the city.',
  Rig: 'The same.',
  RigRoot: 'Directory of the rig; empty where there is none.',
  WorkDir: 'Directory that the agent works in.',
  IssuePrefix: 'Prefix of the ids of work items of the rig, or of the city.',
  Branch: 'Empty: the branch of a worktree is in the variable `SVC_BRANCH` of the session.',
  DefaultBranch: '`default_branch` of the rig; empty where it has none.',
  ConfigDir: 'Directory of the configuration that declares the agent: the city, or the pack.',
  WorkQuery: '`work_query` of the agent; empty where it has none.',
  AssignedInProgressQuery: 'Empty; kept for prompts that use this name.',
  AssignedReadyQuery: 'Empty; kept for prompts that use this name.',
  RoutedPoolQuery: 'Empty; kept for prompts that use this name.',
  ProviderKey: 'Provider of the agent.',
  ProviderDisplayName: 'Name of the provider for people.',
  InstructionsFile: 'File that the harness reads instructions from, such as `AGENTS.md`.',
} as const

/** Filters beside those of Liquid. */
export const PROMPT_FILTERS = {
  cmd: 'The command line: `{{ "bead list" | cmd }}` is `svcctl bead list`.',
  basename: 'The last part of an identity or a path: `{{ AgentName | basename }}` of `app/core.worker` is `worker`.',
  session: 'Name of the session of an agent: `{{ "app/core.worker" | session }}`. An unknown agent is an error.',
} as const

/** Variables of fields that are templates, by their kind. */
export const FIELD_VARIABLES = {
  command: ['Session', 'Agent', 'AgentBase', 'Rig', 'RigRoot', 'CityRoot', 'CityName', 'WorkDir', 'ConfigDir'],
  path: ['Agent', 'AgentBase', 'Rig', 'RigRoot', 'CityRoot', 'CityName'],
  session: ['City', 'Agent', 'Dir', 'Name'],
  resume: ['SessionKey'],
} as const
