/**
 * What each table and key of the configuration means, for the reference, the man pages and editors. Apart from the
 * schemas, because a server that runs reads none of it; `npm run generate` fails where a key has no words, or words have
 * no key.
 */

import { AUTOMATION_WORDS } from './automation/file-words.ts'

/** Words by table, then by key; `''` is the table itself. */
export type TableWords = Readonly<Record<string, string>>

const AGENT: TableWords = {
  '': 'Who can do work: what is started, where, with which prompt, how many of it and for how long.',
  name: 'Name of the agent.',
  dir: 'Rig that it belongs to; an agent of the city has none.',
  description: 'What it is there for, in lists.',
  scope: 'Where there is one of it: in the city, or in each rig; in both where it says nothing.',
  depends_on: 'Agents that must be up before it starts. Names without a rig or binding mean its own.',
  suspended: 'No session of it is started.',
  provider:
    'What it runs on: a provider of the city or a built-in one. Else that of `[agent_defaults]` or `[workspace]`.',
  upstream: 'The `[upstreams.<name>]` whose address and keys its provider gets.',
  start_command: 'Shell command that is run instead of the command of the provider.',
  args: 'Arguments of the command; they replace those of the provider.',
  option_defaults: 'Values of the options of its provider, such as `permission_mode`.',
  env: 'Environment variables of its sessions, over those of the provider and of the city.',
  mcp_servers: 'Servers of tools that it is given where it is run over ACP.',
  session: 'How it is run; else as `[session] provider` says.',
  lifecycle: '`one_shot`: its process ends by itself when its work is done, which is no crash.',
  attach: 'People may attach to its terminal.',
  work_dir:
    'Directory that it works in, relative to its rig, or to the city where it has none; made there where it is missing. Else that of its rig, or of the city.',
  isolation:
    '`worktree`: each of its sessions works in a git worktree of its own, on a branch of its own. `none`: in the directory as it is.',
  base_ref: 'Branch, tag or commit that worktrees of its sessions begin at. Else as `[worktrees]` says.',
  worktree_setup: 'Commands that make a new worktree of it ready, instead of those of `[worktrees]`.',
  session_alias: 'Alias of its sessions.',
  prompt_template: 'File with its prompt: plain text, or a template where the name ends in `.template.md`.',
  prompt_mode: 'How the program gets the prompt: as the last argument, behind `prompt_flag`, or not.',
  prompt_flag: 'Flag that the prompt follows; needed where `prompt_mode` is `flag`.',
  nudge: 'Text that is typed once it has started.',
  append_fragments: 'Fragments of prompts that follow its own.',
  restart_on_prompt_change: 'A changed prompt starts its sessions anew.',
  ready_delay_ms: 'Milliseconds from the start until it counts as ready.',
  ready_prompt_prefix: 'It is ready when a line of its screen begins with this.',
  pre_start: 'Shell commands before the session starts; a failure stops the start.',
  session_setup: 'Shell commands once the session has been made.',
  session_setup_script: 'A script after them.',
  session_live: 'Shell commands that may run at any time and again; a change runs them in living sessions.',
  overlay_dir: 'Directory whose files are laid into the work directory; what is there is never overwritten.',
  min_active_sessions: 'So many sessions of it run at all times.',
  max_active_sessions: 'At most so many; `-1` is without a limit. Else as the rig or `[workspace]` says.',
  scale_check: 'Shell command that prints how many sessions are wanted.',
  namepool: 'File with an alias in each line, for its sessions.',
  drain_timeout: 'How long a session that is not wanted any more may finish.',
  on_boot: 'Shell command when the city starts.',
  on_death: 'Shell command when a session of it has ended.',
  work_query: 'Shell command that prints the work that it can take; its prompt says it.',
  default_sling_formula: 'Formula for work that is given to it without one.',
  idle_timeout: 'A session without work ends after this long.',
  max_session_age: 'A session is started anew after this long, between two turns.',
  max_session_age_jitter: 'Up to this much more, so that not all of them do at once.',
  sleep_after_idle: 'A session without work sleeps after this long; else as `[session_sleep]` says.',
  assigned_work_defer_limit: 'How long assigned work puts off that an idle session ends.',
  wake_mode: 'Who wakes goes on with the conversation, or begins a new one.',
  resume_command: 'Command that goes on with a conversation; `{{ SessionKey }}` stands for its key.',
  api: 'How much of the API its sessions may use, where tokens are asked for.',
  hooks: 'Whether its harness tells what it does by hooks, which are laid for each run; else as its provider says.',
  permissions:
    'Rules about tools, in order; the first that holds decides, then those of `[agents]`, else somebody is asked.',
}

const PERMISSION: TableWords = {
  '': 'A rule about tools: what is let through or refused before anybody is asked.',
  tool: 'Name of the tool as its harness calls it, `*` standing for any characters; or `shell`, `edit`, `read`, `fetch`.',
  match:
    'What the command, the path or the address must look like: `*` is any characters, in a path none of them `/`; `**` also that.',
  action: '`allow`, `deny`, or `ask` somebody.',
}

const PROVIDER: TableWords = {
  '': 'What agents run on: a program, how it is started and how one talks to it. Built-in ones need no declaration.',
  base: 'Provider that it goes on from: `builtin:claude`, `provider:own`, or a name; `""` for none.',
  display_name: 'Name for people.',
  command: 'The program. It or `base` is needed.',
  args: 'Its arguments; they replace those of `base`.',
  args_append: 'Arguments behind those of `base`.',
  acp_command: 'The program where it is run over ACP.',
  acp_args: 'Its arguments there.',
  acp_files: 'Over ACP it reads and writes files through us; where this is `false`, by itself.',
  path_check: 'Program that is looked for on the PATH to tell whether the provider can be used; `command` else.',
  instructions_file: 'Name of the file in a project that it reads its instructions from.',
  prompt_mode: 'How the program gets the prompt: as the last argument, behind `prompt_flag`, or not.',
  prompt_flag: 'Flag that the prompt follows; needed where `prompt_mode` is `flag`.',
  ready_delay_ms: 'Milliseconds from the start until it counts as ready.',
  ready_prompt_prefix: 'It is ready when a line of its screen begins with this.',
  env: 'Environment variables of its sessions.',
  inherit_env:
    'Which variables of the supervisor it gets: `all`, or a list of names; it can only narrow what `[session]` says.',
  mcp_servers: 'Servers of tools that its agents are given over ACP.',
  io: 'Whether it runs on a terminal or on pipes.',
  ready_confirmation: 'It asks for a confirmation when it starts.',
  delivery: 'How messages are typed: as a line of a shell, or into a screen that is drawn.',
  supports_acp: 'It can be run over ACP.',
  accept_startup_dialogs: 'Dialogs of its start are accepted.',
  hooks:
    'Whether it tells what it does by hooks, where it has some: they are laid for each run, and in no file of a person.',
  resume_flag: 'Flag, or subcommand, that goes on with a conversation.',
  resume_style: 'Which of the two `resume_flag` is.',
  resume_command: 'Command that goes on with a conversation; `{{ SessionKey }}` stands for its key.',
  session_id_flag: 'Flag that gives a conversation its id.',
  option_defaults: 'Values of its options where nobody chooses.',
  options_schema: 'What can be chosen for a session, such as the model or the mode of permissions.',
  options_schema_merge: 'Whether these options replace those of `base`, or are merged by their key.',
  upstream_env: 'Names of the variables that an `[upstreams.<name>]` is given to the program in.',
}

const RIG: TableWords = {
  '': 'A project directory that agents work in.',
  name: 'Name of the rig.',
  path: 'Its directory. Belongs into `.svc/site.toml`, for it differs from machine to machine.',
  prefix: 'What ids of its beads begin with; made from the name where it says nothing.',
  default_branch: 'Branch that work is based on.',
  suspended_on_start: 'It is suspended until somebody resumes it.',
  max_active_sessions: 'At most so many sessions of its agents; `-1` is without a limit.',
  session_sleep: 'When its sessions sleep; over that of the city.',
  formulas_dir: 'Directory with formulas of its own, relative to the city.',
  formula_vars: 'Values of variables of formulas.',
  default_sling_target: 'Agent that gets work which names nobody.',
  imports: 'Packs of this rig.',
  patches: 'Changes of agents, in this rig only; they come after those of the city.',
}

const IMPORTS: TableWords = {
  '': 'A pack, under the name that its agents get before theirs (`review.lint`).',
  source: 'A directory, or a URL of git with `//directory` where the pack is not at the top.',
  version: 'Which releases will do (`^1.4`), or `sha:<commit>`; the highest release where it says nothing.',
  export: 'Who imports this pack sees what it imports there as if it were its own.',
}

const NAMED_SESSION: TableWords = {
  '': 'A session that there is one of, with a name that stays.',
  template: 'Agent that it is a session of.',
  name: 'Its name; that of the agent else.',
  scope: 'In the city, or in each rig.',
  dir: 'Rig that it belongs to.',
  mode: 'Whether it always runs, or from when it is needed.',
}

const SLEEP: TableWords = {
  '': 'After how long without work sessions sleep that no setting of their agent speaks of.',
  interactive_resume: 'Those that people may attach to and that go on with their conversation.',
  interactive_fresh: 'Those that people may attach to and that begin a new one.',
  noninteractive: 'All others.',
}

/** Tables that stand in several files have one entry; `config-fields.ts` says which is which. */
export const CONFIG_WORDS: Readonly<Record<string, TableWords>> = {
  ...AUTOMATION_WORDS,
  city: {
    include: 'Files whose content is merged behind this one, in this order; they include nothing themselves.',
  },
  agent: AGENT,
  providers: PROVIDER,
  'providers.options_schema': {
    '': 'Something that can be chosen for a session.',
    key: 'Name of the option.',
    label: 'Name for people.',
    type: 'Kind of the option.',
    default: 'Value where nobody chooses.',
    choices: 'What can be chosen.',
    live_command: 'What is typed to a running agent to change it; `{value}` stands for the value.',
    free_args:
      'Any text is a value, and these arguments say it; `{value}` stands for it. The choices are suggestions then.',
    omit: 'Takes the option of this key away that `base` has.',
  },
  'providers.options_schema.choices': {
    '': 'A value of an option, and what it does to the command.',
    value: 'The value.',
    label: 'Name for people.',
    flag_args: 'Arguments that it adds.',
    flag_aliases: 'Other arguments that say the same, each as a list.',
    env: 'Environment variables that it sets.',
    acp_mode: 'Mode of ACP that it means.',
  },
  'providers.upstream_env': {
    '': 'Names of environment variables.',
    base_url: 'The one for the address.',
    api_key: 'The one for the key.',
    auth_token: 'The one for the token.',
  },
  upstreams: {
    '': 'Where the model of a provider is served, with what credentials. Changed keys restart nothing.',
    description: 'What it is, for people.',
    base_url: 'Address; `$NAME` is a variable of the supervisor, here and in the next two.',
    api_key: 'Key.',
    auth_token: 'Token.',
    base_url_env: 'Variable that the address is given in, where the provider does not say.',
    api_key_env: 'Variable that the key is given in.',
    auth_token_env: 'Variable that the token is given in.',
    env: 'Further variables.',
  },
  imports: IMPORTS,
  formulas: {
    '': 'Formulas of the city; they are always in `formulas/`.',
    commands:
      'Commands that agents may choose for variables with `type = "command"`. Any other command is for callers with the right `city`.',
  },
  agents: {
    '': 'What holds for all agents, beside what each of them says.',
    permissions: 'Rules about tools, behind those of each agent; they hold for chats with a provider too.',
  },
  'agent.permissions': PERMISSION,
  agent_defaults: {
    '': 'What agents have that say nothing of it.',
    provider: 'Provider.',
    upstream: 'Upstream.',
    default_sling_formula: 'Formula for work that is given without one.',
    isolation: 'Whether sessions work in worktrees of their own.',
    append_fragments: 'Fragments of prompts that follow those of the agent.',
  },
  rigs: RIG,
  'rigs.patches': { agent: 'Agent that is changed.' },
  defaults: { '': 'What new things begin with.' },
  'defaults.rig': { '': 'What each new rig begins with.', imports: 'Packs that each new rig imports.' },
  patches: {
    '': 'Changes of what packs and other files declare, without touching those.',
    agent: 'Changes of agents.',
    named_session: 'Changes of named sessions.',
    rigs: 'Changes of rigs.',
    providers: 'Changes of providers.',
  },
  'patches.agent': {
    '': 'Change of an agent: keys of it replace, maps are merged.',
    name: 'Agent that is changed.',
    dir: 'Its rig.',
  },
  'patches.rigs': { '': 'Change of a rig: keys of it replace, maps are merged.', name: 'Rig that is changed.' },
  'patches.providers': {
    '': 'Change of a provider: keys of it replace, maps are merged.',
    name: 'Provider that is changed.',
    _replace: 'Nothing of the provider stays but what stands here.',
  },
  'patches.named_session': {
    '': 'Change of a named session.',
    name: 'The session that is changed.',
    dir: 'Its rig.',
    template: 'Its agent; instead of the name where that is clear.',
    mode: 'Whether it always runs, or from when it is needed.',
  },
  named_session: NAMED_SESSION,
  service: {
    '': 'A program that runs beside the city and serves HTTP.',
    name: 'Name of the service.',
    kind: 'Kind of service.',
    process: 'What is run.',
    publication: 'How it is shown to others.',
    publish_mode: '`direct` lets everybody in who reaches the server, also without a token.',
    state_root: 'Directory for what it keeps: in `.svc/services/`, which may be left out; its name where absent.',
    first_byte_timeout: 'How long an answer may take to begin.',
    idle_timeout: 'How long a connection may be silent.',
  },
  'service.process': {
    '': 'The process of a service.',
    command: 'The program and its arguments; no shell reads them.',
    health_path: 'Path that answers 2xx when it is well; without one it is while it takes connections.',
    listen: 'Whether it listens on a socket or on a port, which its environment names.',
    env: 'Environment variables.',
  },
  'service.publication': {
    '': 'How a service is shown.',
    allow_websockets: 'WebSockets are passed on.',
    sandbox:
      'Pages of a private service run in a sandbox of the browser. `false`: as pages of this server, which may do all that whoever opens them may do with its API.',
  },
  pricing: {
    '': 'What a model costs, in US dollars for a million tokens. The first entry that is about the model counts; those of the city come first.',
    model: 'Name of the model; `*` stands for any text.',
    input: 'Of the prompt, as far as no cache had or got it.',
    output: 'Of the answer.',
    cache_read: 'Read from a cache. Without it the cost of a turn that did is unknown.',
    cache_write: 'Written to a cache. Without it the cost of a turn that did is unknown.',
  },
  budget: {
    '': 'What agents may cost. What happens at a crossing happens once; a person who wakes a session lets it go on.',
    per_day_usd: 'US dollars that the city may cost a day (UTC).',
    per_session_usd: 'US dollars that one session may cost in its life.',
    action: '`warn` tells it as `budget.crossed`; `suspend` also suspends the sessions that it is about.',
  },
  workspace: {
    '': 'The city as a whole.',
    name: 'Name of the city; that of its directory else. `.svc/site.toml` comes first.',
    prefix: 'What ids of its beads begin with; made from the name where it says nothing.',
    provider: 'Provider of agents that name none.',
    start_command: 'Shell command that agents run which have none of their own, instead of that of their provider.',
    timezone: 'Time zone, such as `Europe/Berlin`; that of the machine else.',
    suspended_on_start: 'The city is suspended until somebody resumes it.',
    max_active_sessions: 'At most so many sessions in the whole city; `-1` is without a limit.',
    session_template: 'Names of sessions for the system, from `City`, `Agent`, `Dir` and `Name`.',
    global_fragments: 'Fragments of prompts that every agent gets, before all others.',
    env: 'Environment variables of all sessions.',
  },
  beads: { '': 'Units of work.', policies: 'Rules by type of bead.' },
  'beads.policies': {
    '': 'How beads of a type, such as `task`, are kept.',
    storage: 'What a new one is that does not say: `ephemeral` is a wisp, `no_history` is marked so for other tools.',
    delete_after_close:
      'They are deleted this long after they were closed, unless something open is below, depends on or tracks them. For `molecule`: molecules that have ended go with all their beads, unless they were started with `keep`.',
  },
  mail: {
    '': 'What people and agents write to each other.',
    retention_ttl:
      'A message is deleted this long after it was read or archived. What nobody has read is kept; where its session was deleted it goes this long after it was sent (30 days with `off`).',
  },
  work: { '': 'Claims of work.', lease_ttl: 'A claim ends when its holder shows no sign of life for this long.' },
  session: {
    '': 'How sessions are run and spoken to.',
    provider: 'What runs agents that do not say; empty is what the provider of the agent takes best.',
    setup_timeout: 'How long `pre_start`, `session_setup` and the like may take, each.',
    startup_timeout: 'A start that takes longer has failed.',
    nudge_lock_timeout: 'How long the request of a message waits for a busy agent before it ends as queued.',
    start_pending_timeout: 'How long a session may wait for its turn to start.',
    line_ready_timeout: 'How long the first prompt of a line-oriented program is waited for.',
    delivery_timeout: 'A message that could not be typed by then has failed.',
    delivery_ttl: 'What waits for a session is forgotten after this.',
    interrupt_timeout: 'A message that interrupts is typed by then, whether the turn has ended or not.',
    on_demand_sleep: 'A named session that exists on demand sleeps after this long without work.',
    debounce_ms: 'Milliseconds between the text of a message and its Enter.',
    progress_stall_timeout: 'A turn without a sign of life for this long is ended with its process.',
    claim_holder_stall_timeout:
      'Who holds work and shows no sign of life for this long is nudged; after the same time again, the work is open.',
    inherit_env:
      'Which variables of the supervisor agents get: `all`, or a list of names. `SVC_*` are never among them.',
    env_deny: 'Variables that no agent gets, whatever `inherit_env` says.',
    mcp_servers: 'Servers of tools that every agent is given over ACP.',
    acp: 'Agents over ACP.',
  },
  mcp_servers: {
    '': 'A server of tools (MCP): a program, or an address.',
    command: 'The program; either it or `url` is needed.',
    args: 'Its arguments.',
    env: 'Its environment variables; `$NAME` alone stands for one of the supervisor.',
    url: 'The address. An agent that takes none is not told of it.',
    type: 'How the address is spoken to.',
    headers: 'What goes with every request; `$NAME` alone stands for a variable of the supervisor.',
  },
  'session.acp': {
    '': 'Agents over ACP.',
    handshake_timeout: 'How long the beginning of a conversation may take.',
  },
  worktrees: {
    '': 'Git worktrees of sessions that work isolated.',
    base_ref: 'Branch, tag or commit that they begin at. Else the default branch of the rig, else what is checked out.',
    setup: 'Commands that make a new one ready, such as `npm ci`, in their order; the first that fails ends the start.',
    setup_timeout: 'How long all of them may take together; it is no part of `startup_timeout`.',
    disposable:
      'Files that git ignores and that may go with a worktree, such as `*.log` or `tmp/`, written as in `.gitignore`. Others keep it, unless tools make them again.',
  },
  retention: {
    '': 'How long what sessions leave behind is kept. Each removal is told as `retention.swept`.',
    runs_age: 'Output of processes that have ended is removed when it is older.',
    runs_bytes: 'At most so many bytes of such output in the city; the oldest goes first. 0 is without a limit.',
    closed_sessions: 'Sessions are forgotten so long after they were closed.',
    delivery_texts: 'Texts of messages are removed so long after they were delivered, or failed for good.',
  },
  events: { '': 'The log of events.', retention: 'How much of it is kept.' },
  'events.retention': {
    '': 'How much of the log is kept; both limits hold.',
    max_age: 'Older events are removed.',
    max_bytes: 'The oldest events are removed once there is more than this.',
  },
  daemon: {
    '': 'How the city is looked after: restarts, crashes, rounds.',
    patrol_interval: 'Time between two rounds; what happens is acted on at once all the same.',
    tick_debounce: 'How long what happens is collected before it is acted on.',
    max_restarts: 'More restarts of a session within `restart_window` put it into quarantine; 0 is without a limit.',
    restart_window: 'The window of `max_restarts`.',
    rapid_crash_window: 'An end this soon after the start is a rapid crash.',
    rapid_crash_limit: 'So many in a row put a session into quarantine.',
    churn_window: 'An end later than that, but within this, is churn.',
    churn_limit: 'So many in a row put a session into quarantine.',
    quarantine_hold: 'How long a quarantine lasts.',
    rate_limit_hold: 'How long a session rests that its provider has limited.',
    restart_backoff: 'First pause before a restart; it doubles with every crash in a row.',
    restart_backoff_max: 'Longest pause.',
    stale_key_window:
      'An end this soon after a conversation was taken up again means that its key is stale; the next start begins a new one.',
    unknown_state_timeout: 'A session that cannot be observed for this long is told as `session.unknown_state`.',
    shutdown_timeout: 'Time between asking a process to end and ending it.',
    drift_drain_timeout: 'How long a session may finish whose configuration has changed.',
    start_ready_timeout: 'How long a start waits for the agents that it depends on.',
    max_wakes_per_tick: 'At most so many sessions start at once.',
    probe_concurrency: 'At most so many `scale_check`s run at once.',
    session_circuit_breaker: 'Named sessions have a circuit breaker instead of `max_restarts`.',
    session_circuit_breaker_max_restarts: 'So many restarts within the window open it; `max_restarts` else.',
    session_circuit_breaker_window: 'The window; `restart_window` else.',
    session_circuit_breaker_reset_after: 'How long it stays open; two windows else.',
  },
  orders: {
    '': 'What is done at times and on events.',
    skip: 'Orders of packs that are switched off.',
    max_timeout: 'No order may take longer.',
    overrides: 'Changes of orders.',
  },
  'orders.overrides': {
    '': 'Change of an order.',
    name: 'Order that is changed.',
    rig: 'Its rig; `*` for all of them.',
    enabled: 'Whether it is on.',
    trigger: 'What sets it off.',
    interval: 'Time between two runs.',
    schedule: 'Times, as cron writes them.',
    tz: 'Time zone of them.',
    catch_up: 'How late a run that was missed is still made up for.',
    check: 'Shell command of a condition.',
    check_timeout: 'How long that may take.',
    on: 'Type of event that sets it off.',
    match: 'What must be in the payload of the event.',
    batch: 'Several events make one run.',
    target: 'Agent that gets the work.',
    timeout: 'How long a run may take.',
    overlap: 'Whether a run may begin before the last has ended.',
    idempotent: 'A run that was cut off may be repeated.',
    env: 'Environment variables.',
  },
  chat_sessions: {
    '': 'Sessions that people have begun.',
    idle_timeout: 'Such a session ends after this long without work.',
  },
  session_sleep: SLEEP,
  extmsg: {
    '': 'Messages from chat services.',
    retention_ttl: 'How long what was said is kept in transcripts.',
    default_route: 'Who gets what is said in conversations that nobody has.',
  },
  'extmsg.default_route': {
    '': 'Who gets what is said in conversations of a provider that nobody has: the first message binds such a conversation to it.',
    provider: 'The provider of the adapter, as `irc`; letter case does not count.',
    account_id: 'Only for this account there; goes before a route for the whole provider.',
    agent: 'Named session, or agent that is no pool.',
  },
  doctor: { '': 'Checks of the city.', check: 'Checks of its own.' },
  'doctor.check': {
    '': 'A check.',
    name: 'Name of the check.',
    script: 'Script that fails where something is wrong.',
    description: 'What it looks at.',
    fix: 'Script that mends it.',
  },
  pack: {
    '': 'What a pack is.',
    name: 'Name of the pack.',
    schema: 'Version of this format: 2.',
    version: 'Release of the pack.',
    requires_svc: 'Versions of svcctl that it works with; under others it is refused.',
    description: 'What it is there for.',
    requires: 'Agents that the city must have.',
  },
  'pack.requires': {
    '': 'An agent that the city must have.',
    scope: 'In the city, or in the rig.',
    agent: 'Its name.',
  },
  global: { '': 'What a pack adds to all agents of the city.', session_live: 'Commands behind those of each agent.' },
  site: {
    '': 'What differs from machine to machine.',
    workspace_name: 'Name of the city.',
    workspace_prefix: 'What ids of its beads begin with.',
    bootstrap_profile: 'What the city was made with.',
    rigs: 'Where the rigs are.',
  },
  'site.rigs': { '': 'Where a rig is.', path: 'Its directory.' },
}

/** `$SVC_HOME/supervisor.toml`. */
export const SUPERVISOR_WORDS: Readonly<Record<string, TableWords>> = {
  supervisor: {
    '': 'The server. What is read at its start; a restart makes a change hold.',
    bind: 'Address to listen on. On any but a loopback address a token is asked for.',
    port: 'Port to listen on; 0 for any free one.',
    log_level: 'How much stands in `supervisor.log`.',
    auth: 'Ask for a token on a loopback address too.',
    allow_mutations: 'Whether anything can be changed at all.',
    allowed_hosts: 'Names that requests may call the server by, beside `localhost` and loopback addresses.',
    allowed_origins: 'Pages that may use the API: `https://board.example:8443`, or `http://localhost:*`.',
    allowed_uids: 'Users of this machine that may connect without a token, beside its own and root.',
    allowed_pack_hosts:
      'Hosts that packs and clones may come from although their address is a private one: `host` or `host:port`.',
  },
  'events.retention': {
    '': 'How much is kept of the logs of events; a city may say less or more.',
    max_age: 'Older events are removed.',
    max_bytes: 'The oldest events are removed once there is more than this.',
  },
}

/** Each `[[credential]]` of `$SVC_HOME/credentials.toml`. */
export const CREDENTIAL_WORDS: TableWords = {
  '': 'How hosts are reached that packs and clones come from and that not everybody may read, in the state directory of the supervisor; `SVC_CREDENTIALS` names a file that is looked at before it. It must be its owner’s alone (mode 600).',
  match:
    'Host, with a port and the beginning of a path where wanted: `git.example.org/teams`. The longest that says a thing wins. Needed.',
  username: 'Name to log in with: `git` over ssh and `x-access-token` over https where absent.',
  helper: 'Command of a credential helper of git, which gets `get` as its last argument.',
  token_file: 'File with a token, which only its owner can read.',
  token_env:
    'Variable of the supervisor’s environment with a token. Agents have those that do not begin with `SVC_`, too.',
  ssh_key_file: 'File with a private key that has no pass phrase.',
  ca_file: 'Certificates that vouch for the host, instead of the system’s.',
  known_hosts_file: 'Keys of ssh hosts, instead of `~/.ssh/known_hosts`.',
}

/** Each entry of `packs.lock`, which `svcctl pack` writes. */
export const LOCK_WORDS: TableWords = {
  '': 'What a pack from git is pinned to. Written by `svcctl pack add`, `upgrade` and `install`; keep the file in version control.',
  version: 'Tag, or `sha:<commit>` where a commit was asked for.',
  commit: 'The commit.',
  content_hash: 'Hash of everything in it: `sha256:<hex>`.',
  subpath: 'Directory of the pack in its repository.',
  fetched: 'When it was fetched.',
}
