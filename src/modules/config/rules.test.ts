/** Every rule about a city's files (sheet 07 §3), each with the exact place of its error. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { loadCity } from './load/load.ts'
import { loadFiles, OPTIONS, temporaryCity } from './testing.ts'

const PACK = '[pack]\nname = "root"\nschema = 2\n'
const REVIEW = '[pack]\nname = "review"\nschema = 2\n'

type Case = {
  name: string
  files: Record<string, string>
  /** `file:line:column key`. */
  at: string
  says: RegExp
  hint?: RegExp
  warning?: true
}

const CASES: Case[] = [
  {
    name: 'TOML syntax',
    files: { 'city.toml': '[workspace]\nprovider = \n' },
    at: 'city.toml:2:11 ',
    says: /not valid TOML: a value is missing/,
  },
  {
    name: 'a key twice',
    files: { 'city.toml': '[daemon]\nmax_restarts = 1\nmax_restarts = 2\n' },
    at: 'city.toml:3:1 ',
    says: /not valid TOML/,
  },
  {
    name: 'a missing required key',
    files: { 'city.toml': '[[rigs]]\nprefix = "x"\n' },
    at: 'city.toml:1:3 rigs[0].name',
    says: /`name` is required/,
  },
  {
    name: 'a bad enum',
    files: { 'city.toml': '[[agent]]\nname = "a"\nwake_mode = "resum"\n' },
    at: 'city.toml:3:13 agent[0].wake_mode',
    says: /not one of `resume`, `fresh`/,
    hint: /resume/,
  },
  {
    name: 'a wrong type',
    files: { 'city.toml': '[daemon]\nmax_restarts = "5"\n' },
    at: 'city.toml:2:16 daemon.max_restarts',
    says: /must be a whole number, not text/,
  },
  {
    name: 'a number below its limit',
    files: { 'city.toml': '[workspace]\nmax_active_sessions = -2\n' },
    at: 'city.toml:2:23 workspace.max_active_sessions',
    says: /at least -1/,
  },
  {
    name: 'a bad agent name',
    files: { 'city.toml': '[[agent]]\nname = "a b"\n' },
    at: 'city.toml:2:8 agent[0].name',
    says: /not allowed/,
  },
  {
    name: 'inherited variables that are neither all nor a list',
    files: { 'city.toml': '[session]\ninherit_env = "some"\n' },
    at: 'city.toml:2:15 session.inherit_env',
    says: /`some` is not allowed here: `all`, or a list of names/,
  },
  {
    name: 'inherited variables as a number',
    files: { 'city.toml': '[session]\ninherit_env = 1\n' },
    at: 'city.toml:2:15 session.inherit_env',
    says: /must be a list or text, not 1/,
  },
  {
    name: 'a denied variable that is no name',
    files: { 'city.toml': '[session]\nenv_deny = ["AWS_*", "A-B"]\n' },
    at: 'city.toml:2:22 session.env_deny[1]',
    says: /`A-B` is not allowed here: the name of a variable/,
  },
  {
    name: 'a duplicate agent',
    files: { 'city.toml': '[[agent]]\nname = "a"\n[[agent]]\nname = "a"\n' },
    at: 'city.toml:3:3 agent[1]',
    says: /second entry for `a`: the first is at city.toml:1/,
  },
  {
    name: 'one agent name from two packs',
    files: {
      'city.toml': '',
      'pack.toml': `${PACK}[imports.x]\nsource = "./x"\nexport = true\n[imports.y]\nsource = "./y"\nexport = true\n`,
      'x/pack.toml': REVIEW,
      'x/agents/lint/agent.toml': '',
      'x/agents/lint/prompt.md': 'x',
      'y/pack.toml': REVIEW,
      'y/agents/lint/prompt.md': 'y',
    },
    at: 'y/agents/lint/agent.toml:1:1 name',
    says: /two agents `lint`/,
  },
  {
    name: 'depends_on a missing agent',
    files: { 'city.toml': '[[agent]]\nname = "builder"\n[[agent]]\nname = "b"\ndepends_on = ["bilder"]\n' },
    at: 'city.toml:5:15 depends_on',
    says: /does not exist/,
    hint: /builder/,
  },
  {
    name: 'a circle of dependencies',
    files: { 'city.toml': '[[agent]]\nname = "a"\ndepends_on = ["b"]\n[[agent]]\nname = "b"\ndepends_on = ["a"]\n' },
    at: 'city.toml:6:15 depends_on',
    says: /circle: a → b → a/,
  },
  {
    name: 'min above max',
    files: { 'city.toml': '[[agent]]\nname = "a"\nmin_active_sessions = 3\nmax_active_sessions = 2\n' },
    at: 'city.toml:3:23 min_active_sessions',
    says: /3 is more than max_active_sessions 2 \(city.toml:4\)/,
  },
  {
    name: 'min above the limit of the workspace',
    files: { 'city.toml': '[workspace]\nmax_active_sessions = 1\n[[agent]]\nname = "a"\nmin_active_sessions = 2\n' },
    at: 'city.toml:5:23 min_active_sessions',
    says: /city.toml:2/,
  },
  {
    name: 'prompt_mode flag without prompt_flag, agent',
    files: { 'city.toml': '[[agent]]\nname = "a"\nprompt_mode = "flag"\n' },
    at: 'city.toml:3:15 prompt_flag',
    says: /needs `prompt_flag`/,
  },
  {
    name: 'prompt_mode flag without prompt_flag, provider',
    files: { 'city.toml': '[providers.x]\ncommand = "x"\nprompt_mode = "flag"\n' },
    at: 'city.toml:3:15 providers.x.prompt_flag',
    says: /needs `prompt_flag`/,
  },

  {
    name: 'an unknown key in pack.toml',
    files: { 'city.toml': '', 'pack.toml': `${PACK}descripton = "x"\n` },
    at: 'pack.toml:4:1 pack.descripton',
    says: /unknown key/,
    hint: /description/,
  },
  {
    name: 'an unknown key in an import',
    files: {
      'city.toml': '',
      'pack.toml': `${PACK}[imports.x]\nsource = "./x"\nref = "main"\n`,
      'x/pack.toml': REVIEW,
    },
    at: 'pack.toml:6:1 imports.x.ref',
    says: /unknown key/,
  },
  {
    name: 'an unknown key in city.toml',
    files: { 'city.toml': '[workspace]\nproviderr = "x"\n' },
    at: 'city.toml:2:1 workspace.providerr',
    says: /unknown key/,
    hint: /provider/,
  },
  {
    name: 'an unknown table',
    files: { 'city.toml': '[deamon]\nmax_restarts = 1\n' },
    at: 'city.toml:1:2 deamon',
    says: /unknown key/,
    hint: /daemon/,
  },
  {
    name: 'an unknown key in a fragment',
    files: { 'city.toml': 'include = ["f.toml"]\n', 'f.toml': '\n[daemon]\npatrol = "1s"\n' },
    at: 'f.toml:3:1 daemon.patrol',
    says: /unknown key/,
  },
  {
    name: 'include in a fragment',
    files: { 'city.toml': 'include = ["f.toml"]\n', 'f.toml': 'include = ["g.toml"]\n' },
    at: 'f.toml:1:1 include',
    says: /unknown key/,
    hint: /one level/,
  },
  {
    name: 'an unknown key in agent.toml',
    files: { 'city.toml': '', 'agents/a/agent.toml': 'idle_timout = "5m"\n' },
    at: 'agents/a/agent.toml:1:1 idle_timout',
    says: /unknown key/,
    hint: /idle_timeout/,
  },
  {
    name: 'an unknown key in site.toml',
    files: { 'city.toml': '', '.svc/site.toml': 'workspacename = "x"\n' },
    at: '.svc/site.toml:1:1 workspacename',
    says: /unknown key/,
    hint: /workspace_name/,
  },
  ...['[beads]\nprovider = "file"', '[events]\nprovider = ""', '[mail]\nprovider = "fake"'].map((text) => ({
    name: `dropped: ${text.split('\n').join(' ')}`,
    files: { 'city.toml': `${text}\n` },
    at: `city.toml:2:1 ${text.slice(1, text.indexOf(']'))}.provider`,
    says: /unknown key/,
    hint: /database/,
  })),
  ...['usage', 'api', 'dolt', 'webhooks', 'convergence'].map((table) => ({
    name: `dropped: [${table}]`,
    files: { 'city.toml': `[${table}]\n` },
    at: `city.toml:1:2 ${table}`,
    says: /unknown key/,
  })),
  {
    name: 'dropped: [events.rotation]',
    files: { 'city.toml': '[events.rotation]\nenabled = true\n' },
    at: 'city.toml:1:9 events.rotation',
    says: /unknown key/,
    hint: /retention/,
  },
  {
    name: 'dropped: a session provider of the reference',
    files: { 'city.toml': '[session]\nprovider = "exec:run"\n' },
    at: 'city.toml:2:12 session.provider',
    says: /not one of/,
  },

  {
    name: 'an unparsable duration',
    files: { 'city.toml': '[daemon]\npatrol_interval = "5 minutes"\n' },
    at: 'city.toml:2:19 daemon.patrol_interval',
    says: /not a duration: "5 minutes"/,
  },
  {
    name: 'off where it is not allowed',
    files: { 'city.toml': '[daemon]\npatrol_interval = "off"\n' },
    at: 'city.toml:2:19 daemon.patrol_interval',
    says: /not a duration/,
  },
  {
    name: 'a duration below its limit',
    files: { 'city.toml': '[work]\nlease_ttl = "5s"\n' },
    at: 'city.toml:2:13 work.lease_ttl',
    says: /at least 10s/,
  },
  {
    name: 'an unknown time zone',
    files: { 'city.toml': '[workspace]\ntimezone = "Europe/Lissabon"\n' },
    at: 'city.toml:2:12 workspace.timezone',
    says: /not a time zone/,
  },

  {
    name: 'an unknown provider of the workspace',
    files: { 'city.toml': '[workspace]\nprovider = "codx"\n[providers.codex]\nbase = "builtin:codex"\n' },
    at: 'city.toml:2:12 workspace.provider',
    says: /no provider `codx`/,
    hint: /codex/,
  },
  {
    name: 'nearly a built-in, which needs no declaration',
    files: { 'city.toml': '[[agent]]\nname = "a"\nprovider = "cluade"\n' },
    at: 'city.toml:3:12 provider',
    says: /no provider `cluade`/,
    hint: /claude/,
  },
  {
    name: 'an unknown base',
    files: { 'city.toml': '[providers.x]\nbase = "builtin:clade"\n' },
    at: 'city.toml:2:8 providers.x.base',
    says: /no provider `builtin:clade`/,
    hint: /builtin:claude/,
  },
  {
    name: 'a circle of bases',
    files: { 'city.toml': '[providers.x]\nbase = "provider:y"\n[providers.y]\nbase = "provider:x"\n' },
    at: 'city.toml:2:8 providers.x.base',
    says: /provider:x → provider:y → provider:x/,
  },
  {
    name: 'neither command nor base',
    files: { 'city.toml': '[providers.claude]\nargs = ["x"]\n' },
    at: 'city.toml:1:12 providers.claude',
    says: /`command` or `base` is required/,
  },
  {
    name: 'an option default that is no choice',
    files: { 'city.toml': '[providers.x]\nbase = "builtin:claude"\noption_defaults = { permission_mode = "plam" }\n' },
    at: 'city.toml:3:39 providers.x.option_defaults.permission_mode',
    says: /no choice/,
    hint: /plan/,
  },
  {
    name: 'a setting of a provider that nothing reads any more',
    files: { 'city.toml': '[providers.x]\nbase = "builtin:claude"\ntitle_model = "haiku"\n' },
    at: 'city.toml:3:1 providers.x.title_model',
    says: /title_model/,
    hint: /session rename/,
  },
  {
    name: 'an unknown option',
    files: { 'city.toml': '[providers.x]\nbase = "builtin:claude"\noption_defaults = { modle = "opus" }\n' },
    at: 'city.toml:3:21 providers.x.option_defaults.modle',
    says: /no option/,
    hint: /model/,
  },
  {
    name: 'an option of an agent that is no choice',
    files: {
      'city.toml':
        '[providers.x]\nbase = "builtin:claude"\n[[agent]]\nname = "a"\nprovider = "x"\noption_defaults = { permission_mode = "pln" }\n',
    },
    at: 'city.toml:6:39 option_defaults.permission_mode',
    says: /no choice/,
    hint: /plan/,
  },
  {
    name: 'a schema default that is no choice',
    files: {
      'city.toml':
        '[providers.x]\ncommand = "x"\noptions_schema = [{ key = "k", default = "b", choices = [{ value = "a" }] }]\n',
    },
    at: 'city.toml:3:42 providers.x.options_schema[0].default',
    says: /no choice/,
  },
  {
    name: 'an unknown upstream',
    files: { 'city.toml': '[[agent]]\nname = "a"\nupstream = "x"\n' },
    at: 'city.toml:3:12 upstream',
    says: /no upstream `x`/,
  },
  {
    name: 'an upstream value without a variable',
    files: {
      'city.toml':
        '[providers.codex]\nbase = "builtin:codex"\n[[agent]]\nname = "a"\nprovider = "codex"\nupstream = "u"\n[upstreams.u]\napi_key = "$KEY"\n',
    },
    at: 'city.toml:8:11 upstreams.u.api_key',
    says: /names no environment variable/,
  },

  {
    name: 'a rig twice',
    files: { 'city.toml': '[[rigs]]\nname = "web"\npath = "a"\n[[rigs]]\nname = "web"\npath = "b"\n' },
    at: 'city.toml:4:3 rigs[1]',
    says: /second entry for `web`/,
  },
  {
    name: 'rigs that differ only in case',
    files: { 'city.toml': '[[rigs]]\nname = "web"\npath = "a"\n[[rigs]]\nname = "Web"\npath = "b"\nprefix = "q"\n' },
    at: 'city.toml:5:8 rigs.name',
    says: /only in case/,
  },
  {
    name: 'a prefix clash of rigs',
    files: {
      'city.toml':
        '[[rigs]]\nname = "web"\nprefix = "x"\npath = "a"\n[[rigs]]\nname = "api"\nprefix = "x"\npath = "b"\n',
    },
    at: 'city.toml:7:10 rigs.prefix',
    says: /belongs to rig `web`/,
  },
  {
    name: 'a prefix clash with the city',
    files: { 'city.toml': '[workspace]\nprefix = "x"\n[[rigs]]\nname = "web"\nprefix = "x"\npath = "a"\n' },
    at: 'city.toml:5:10 rigs.prefix',
    says: /belongs to the city/,
  },
  {
    name: 'a missing rig directory outside the city',
    files: { 'city.toml': '[[rigs]]\nname = "web"\n', '.svc/site.toml': '[rigs.web]\npath = "/no/such/directory"\n' },
    at: '.svc/site.toml:2:8 rigs.path',
    says: /does not exist/,
  },
  {
    name: 'an absolute rig path in city.toml',
    files: { 'city.toml': '[[rigs]]\nname = "web"\npath = "/tmp"\n' },
    at: 'city.toml:3:8 rigs.path',
    says: /absolute path/,
    hint: /site.toml/,
  },
  {
    name: 'a rig path out of the city',
    files: { 'city.toml': '[[rigs]]\nname = "web"\npath = "../x"\n' },
    at: 'city.toml:3:8 rigs.path',
    says: /leads out of the city/,
  },
  {
    name: 'a rig without a path',
    files: { 'city.toml': '[[rigs]]\nname = "web"\n' },
    at: 'city.toml:2:8 rigs.path',
    says: /do not start/,
    warning: true,
  },
  {
    name: 'a path for no rig',
    files: { 'city.toml': '[[rigs]]\nname = "web"\npath = "w"\n', '.svc/site.toml': '[rigs.wbe]\npath = "/tmp"\n' },
    at: '.svc/site.toml:1:7 rigs.wbe',
    says: /no rig `wbe`/,
    hint: /web/,
    warning: true,
  },
  {
    name: 'a bad rig name',
    files: { 'city.toml': '[[rigs]]\nname = "123"\n' },
    at: 'city.toml:2:8 rigs[0].name',
    says: /not only digits/,
  },
  {
    name: 'a bad sling target',
    files: {
      'city.toml': '[[rigs]]\nname = "web"\npath = "w"\ndefault_sling_target = "mayr"\n[[agent]]\nname = "mayor"\n',
    },
    at: 'city.toml:4:24 rigs.default_sling_target',
    says: /no agent `mayr`/,
    hint: /mayor/,
  },
  {
    name: 'an agent in a rig that is not there',
    files: { 'city.toml': '[[rigs]]\nname = "web"\npath = "w"\n[[agent]]\nname = "a"\ndir = "wbe"\n' },
    at: 'city.toml:5:8 agent.dir',
    says: /no rig `wbe`/,
    hint: /web/,
  },

  {
    name: 'a named session twice',
    files: {
      'city.toml': '[[agent]]\nname = "a"\n[[named_session]]\ntemplate = "a"\n[[named_session]]\ntemplate = "a"\n',
    },
    at: 'city.toml:5:3 named_session[1]',
    says: /second entry/,
  },
  {
    name: 'a bad mode',
    files: { 'city.toml': '[[agent]]\nname = "a"\n[[named_session]]\ntemplate = "a"\nmode = "allways"\n' },
    at: 'city.toml:5:8 named_session[0].mode',
    says: /not one of/,
    hint: /always/,
  },
  {
    name: 'always over capacity',
    files: {
      'city.toml':
        '[[agent]]\nname = "a"\nmax_active_sessions = 1\n[[named_session]]\ntemplate = "a"\nmode = "always"\n[[named_session]]\nname = "b"\ntemplate = "a"\nmode = "always"\n',
    },
    at: 'city.toml:10:8 named_session.mode',
    says: /room for 1 \(city.toml:3\)/,
  },
  {
    name: 'always with idle sleep',
    files: {
      'city.toml':
        '[[agent]]\nname = "a"\nsleep_after_idle = "5m"\n[[named_session]]\ntemplate = "a"\nmode = "always"\n',
    },
    at: 'city.toml:6:8 named_session.mode',
    says: /sleeps when idle \(city.toml:3\)/,
  },
  {
    name: 'a named session without its agent',
    files: { 'city.toml': '[[agent]]\nname = "mayor"\n[[named_session]]\ntemplate = "mayr"\n' },
    at: 'city.toml:4:12 named_session.template',
    says: /session is disabled/,
    hint: /mayor/,
    warning: true,
  },

  {
    name: 'a fragment that redefines a value',
    files: {
      'city.toml': 'include = ["f.toml"]\n[daemon]\nmax_restarts = 1\n',
      'f.toml': '[daemon]\nmax_restarts = 2\n',
    },
    at: 'f.toml:2:16 daemon.max_restarts',
    says: /replaces the value from city.toml:3/,
    warning: true,
  },
  {
    name: 'a fragment that redefines a field of a provider',
    files: {
      'city.toml': 'include = ["f.toml"]\n[providers.x]\ncommand = "a"\n',
      'f.toml': '[providers.x]\ncommand = "b"\n',
    },
    at: 'f.toml:2:11 providers.x.command',
    says: /replaces the value from city.toml:3/,
    warning: true,
  },
  {
    name: 'an agent that hides an imported one',
    files: {
      'city.toml': '[[agent]]\nname = "lint"\n',
      'pack.toml': `${PACK}[imports.x]\nsource = "./x"\n`,
      'x/pack.toml': REVIEW,
      'x/agents/lint/prompt.md': 'x',
    },
    at: 'city.toml:2:8 agent.name',
    says: /hides `x.lint` of x\/agents\/lint/,
    warning: true,
  },
  {
    name: 'a missing fragment',
    files: { 'city.toml': 'include = [\n  "f.toml",\n]\n' },
    at: 'city.toml:2:3 include[0]',
    says: /does not exist/,
  },
  {
    name: 'a fragment out of the city',
    files: { 'city.toml': 'include = ["../f.toml"]\n' },
    at: 'city.toml:1:12 include[0]',
    says: /leads out of the city/,
  },

  ...(['prompt_template', 'overlay_dir', 'namepool', 'session_setup_script'] as const).map((key) => ({
    name: `a missing ${key}`,
    files: { 'city.toml': `[[agent]]\nname = "a"\n${key} = "nothing"\n` },
    at: `city.toml:3:${key.length + 4} ${key}`,
    says: /`nothing` does not exist/,
  })),
  {
    name: 'a declared path out of the city',
    files: { 'city.toml': '[[agent]]\nname = "a"\nprompt_template = "../x.md"\n' },
    at: 'city.toml:3:19 prompt_template',
    says: /leads out/,
  },
  {
    name: 'a missing doctor script',
    files: { 'city.toml': '[[doctor.check]]\nname = "a"\nscript = "x.sh"\n' },
    at: 'city.toml:3:10 doctor.check[0].script',
    says: /does not exist/,
  },

  {
    name: 'a service twice',
    files: {
      'city.toml':
        '[[service]]\nname = "s"\nprocess = { command = ["x"] }\n[[service]]\nname = "s"\nprocess = { command = ["y"] }\n',
    },
    at: 'city.toml:4:3 service[1]',
    says: /second entry for `s`/,
  },
  {
    name: 'a bad kind of service',
    files: { 'city.toml': '[[service]]\nname = "s"\nkind = "workflow"\nprocess = { command = ["x"] }\n' },
    at: 'city.toml:3:8 service[0].kind',
    says: /not one of `proxy_process`/,
  },
  {
    name: 'a service without a command',
    files: { 'city.toml': '[[service]]\nname = "s"\nprocess = { health_path = "/h" }\n' },
    at: 'city.toml:3:11 service[0].process.command',
    says: /required/,
  },
  {
    name: 'a service with an empty command',
    files: { 'city.toml': '[[service]]\nname = "s"\nprocess = { command = [] }\n' },
    at: 'city.toml:3:23 service.process.command',
    says: /must not be empty/,
  },
  {
    name: 'a state_root that escapes',
    files: { 'city.toml': '[[service]]\nname = "s"\nstate_root = "../x"\nprocess = { command = ["x"] }\n' },
    at: 'city.toml:3:14 service.state_root',
    says: /not below/,
  },
  {
    name: 'a state_root that looks as if it were inside',
    files: {
      'city.toml': '[[service]]\nname = "s"\nstate_root = ".svc/services/../../x"\nprocess = { command = ["x"] }\n',
    },
    at: 'city.toml:3:14 service.state_root',
    says: /not below/,
  },
  {
    name: 'a state_root inside that of another pack',
    files: {
      'city.toml': '[[service]]\nname = "s"\nstate_root = "t/secrets"\nprocess = { command = ["x"] }\n',
      'pack.toml': `${PACK}[imports.x]\nsource = "./x"\n`,
      'x/pack.toml': `${REVIEW}[[service]]\nname = "t"\nprocess = { command = ["x"] }\n`,
    },
    at: 'x/pack.toml:4:3 service.state_root',
    says: /of another pack/,
  },
  {
    name: 'a service that has no time to answer',
    files: { 'city.toml': '[[service]]\nname = "s"\nfirst_byte_timeout = "0s"\nprocess = { command = ["x"] }\n' },
    at: 'city.toml:3:22 service[0].first_byte_timeout',
    says: /at least 1s/,
  },
  {
    name: 'a service with a workflow',
    files: {
      'city.toml': '[[service]]\nname = "s"\nworkflow = { contract = "y" }\nprocess = { command = ["x"] }\n',
    },
    at: 'city.toml:3:1 service[0].workflow',
    says: /unknown/,
  },
  {
    name: 'a service that says who may see it',
    files: {
      'city.toml': '[[service]]\nname = "s"\npublication = { visibility = "tenant" }\nprocess = { command = ["x"] }\n',
    },
    at: 'city.toml:3:17 service[0].publication.visibility',
    says: /unknown/,
  },
  {
    name: 'a service with a name that is no part of a path',
    files: { 'city.toml': '[[service]]\nname = "a/b"\nprocess = { command = ["x"] }\n' },
    at: 'city.toml:2:8 service[0].name',
    says: /letters, digits/,
  },
  {
    name: 'a direct service in a pack',
    files: {
      'city.toml': '',
      'pack.toml': `${PACK}[imports.x]\nsource = "./x"\n`,
      'x/pack.toml': `${REVIEW}[[service]]\nname = "s"\npublish_mode = "direct"\nprocess = { command = ["x"] }\n`,
    },
    at: 'x/pack.toml:6:16 service.publish_mode',
    says: /`direct` is allowed in `city.toml` only/,
  },
  {
    name: 'a service from a rig import',
    files: {
      'city.toml': '[[rigs]]\nname = "web"\npath = "w"\nimports.x = { source = "./x" }\n',
      'x/pack.toml': `${REVIEW}[[service]]\nname = "s"\nprocess = { command = ["x"] }\n`,
    },
    at: 'city.toml:4:24 rigs.web.imports.x',
    says: /not for a rig/,
  },

  {
    name: 'a pack that is not there',
    files: { 'city.toml': '', 'pack.toml': `${PACK}[imports.x]\nsource = "./x"\n` },
    at: 'pack.toml:5:10 imports.x.source',
    says: /no pack at `x`/,
  },
  {
    name: 'a circle of imports',
    files: {
      'city.toml': '',
      'pack.toml': `${PACK}[imports.x]\nsource = "./x"\n`,
      'x/pack.toml': `${REVIEW}[imports.y]\nsource = "../y"\n`,
      'y/pack.toml': `${REVIEW}[imports.x]\nsource = "../x"\n`,
    },
    at: 'y/pack.toml:5:10 imports.x.source',
    says: /circle/,
  },
  {
    name: 'an unknown built-in pack',
    files: { 'city.toml': '', 'pack.toml': `${PACK}[imports.core]\nsource = "builtin:cor"\n` },
    at: 'pack.toml:5:10 imports.core.source',
    says: /no built-in pack `cor`/,
    hint: /core/,
  },
  {
    name: 'a version on a local pack',
    files: {
      'city.toml': '',
      'pack.toml': `${PACK}[imports.x]\nsource = "./x"\nversion = "^1"\n`,
      'x/pack.toml': REVIEW,
    },
    at: 'pack.toml:6:11 imports.x.version',
    says: /no version/,
  },
  {
    name: 'a local pack out of the city',
    files: { 'city.toml': '', 'pack.toml': `${PACK}[imports.x]\nsource = "../x"\n` },
    at: 'pack.toml:5:10 imports.x.source',
    says: /inside the city/,
  },
  {
    name: 'a password in a source',
    files: { 'city.toml': '', 'pack.toml': `${PACK}[imports.x]\nsource = "https://me:secret@example.org/x.git"\n` },
    at: 'pack.toml:5:10 imports.x.source',
    says: /must not contain a user name or password/,
  },
  {
    name: 'a git pack that is not installed',
    files: { 'city.toml': '', 'pack.toml': `${PACK}[imports.x]\nsource = "https://example.org/x.git"\n` },
    at: 'pack.toml:5:10 imports.x.source',
    says: /not available/,
    hint: /pack install/,
  },
  {
    name: 'a bad binding',
    files: { 'city.toml': '', 'pack.toml': `${PACK}[imports.X]\nsource = "./x"\n` },
    at: 'pack.toml:4:10 imports.X',
    says: /not a binding name/,
  },
  {
    name: 'a pack that needs a newer svcctl',
    files: {
      'city.toml': '',
      'pack.toml': `${PACK}[imports.x]\nsource = "./x"\n`,
      'x/pack.toml': '[pack]\nname = "x"\nschema = 2\nrequires_svc = ">=0.3"\n',
    },
    at: 'x/pack.toml:4:16 pack.requires_svc',
    says: /needs svcctl >=0\.3, and this is 0\.2\.0/,
    hint: /upgrade svcctl/,
  },
  {
    name: 'a need of svcctl that is no version',
    files: { 'city.toml': '', 'pack.toml': '[pack]\nname = "x"\nschema = 2\nrequires_svc = "new"\n' },
    at: 'pack.toml:4:16 pack.requires_svc',
    says: /is a version of svcctl/,
  },
  {
    name: 'a wrong pack schema',
    files: { 'city.toml': '', 'pack.toml': '[pack]\nname = "x"\nschema = 3\n' },
    at: 'pack.toml:3:10 pack.schema',
    says: /schema 3 is not supported/,
  },
  {
    name: 'a table that a pack may not have',
    files: { 'city.toml': '', 'pack.toml': `${PACK}[[patches.rigs]]\nname = "x"\n` },
    at: 'pack.toml:4:11 patches.rigs',
    says: /unknown key/,
  },
  {
    name: 'a required agent that is missing',
    files: {
      'city.toml': '',
      'pack.toml': `${PACK}[imports.x]\nsource = "./x"\n`,
      'x/pack.toml': `${REVIEW}[[pack.requires]]\nscope = "city"\nagent = "boss"\n`,
    },
    at: 'x/pack.toml:4:8 pack.requires',
    says: /requires an agent `boss` in the city/,
  },
  {
    name: 'imports in both files',
    files: { 'city.toml': '[imports.x]\nsource = "./x"\n', 'pack.toml': PACK, 'x/pack.toml': REVIEW },
    at: 'city.toml:1:2 imports',
    says: /belongs in `pack.toml`/,
    warning: true,
  },

  {
    name: 'a patch without a target',
    files: { 'city.toml': '[[agent]]\nname = "mayor"\n[[patches.agent]]\nname = "mayr"\nnudge = "x"\n' },
    at: 'city.toml:4:8 patches.agent',
    says: /no agent `mayr` to patch/,
    hint: /mayor/,
  },
  {
    name: 'a patch without its rig',
    files: {
      'city.toml':
        '[[rigs]]\nname = "web"\npath = "w"\n[[agent]]\nname = "a"\ndir = "web"\n[[patches.agent]]\nname = "a"\nnudge = "x"\n',
    },
    at: 'city.toml:8:8 patches.agent',
    says: /no agent/,
    hint: /dir = "web"/,
  },
  {
    name: 'a rig patch without a target',
    files: { 'city.toml': '[[rigs]]\nname = "web"\npath = "w"\npatches = [{ agent = "x.lint", nudge = "x" }]\n' },
    at: 'city.toml:4:22 rigs.patches',
    says: /no agent `x.lint`/,
  },
  {
    name: 'a provider patch without a target',
    files: { 'city.toml': '[[patches.providers]]\nname = "mine"\ncommand = "x"\n' },
    at: 'city.toml:2:8 patches.providers',
    says: /no provider `mine`/,
    hint: /declare it/,
  },
  {
    name: 'a rig table patch without a target',
    files: { 'city.toml': '[[patches.rigs]]\nname = "web"\nprefix = "x"\n' },
    at: 'city.toml:2:8 patches.rigs',
    says: /no rig `web`/,
  },
  {
    name: 'a named session patch without a target',
    files: { 'city.toml': '[[patches.named_session]]\nname = "x"\nmode = "always"\n' },
    at: 'city.toml:1:11 patches.named_session',
    says: /no named session/,
  },

  {
    name: 'an unknown variable in a prompt',
    files: { 'city.toml': '', 'agents/a/prompt.template.md': '---\nversion: 1\n---\nHello\n{{ AgentNam }}\n' },
    at: 'agents/a/prompt.template.md:5:4 ',
    says: /no variable `AgentNam`/,
    hint: /AgentName/,
  },
  {
    name: 'an unknown fragment in a prompt',
    files: {
      'city.toml': '',
      'agents/a/prompt.template.md': '{% render "hous" %}\n',
      'template-fragments/house.template.md': 'x',
    },
    at: 'agents/a/prompt.template.md:1:1 ',
    says: /no fragment `hous`/,
    hint: /house/,
  },
  {
    name: 'an unknown filter in a prompt',
    files: { 'city.toml': '', 'agents/a/prompt.template.md': 'a\n{{ AgentName | basenam }}\n' },
    at: 'agents/a/prompt.template.md:2:1 ',
    says: /no filter `basenam`/,
    hint: /basename/,
  },
  {
    name: 'an unknown variable in a fragment',
    files: {
      'city.toml': '',
      'agents/a/prompt.template.md': '{% render "house" %}\n',
      'template-fragments/house.template.md': 'x\n{{ Nothing }}',
    },
    at: 'template-fragments/house.template.md:2:4 ',
    says: /no variable `Nothing`/,
  },
  {
    name: 'a fragment that contains itself',
    files: {
      'city.toml': '',
      'agents/a/prompt.template.md': '{% render "house" %}\n',
      'template-fragments/house.template.md': '{% render "house" %}',
    },
    at: 'template-fragments/house.template.md:1:1 ',
    says: /contains itself/,
  },
  {
    name: 'an appended fragment that is missing',
    files: { 'city.toml': '[agent_defaults]\nappend_fragments = ["house"]\n[[agent]]\nname = "a"\n' },
    at: 'city.toml:2:21 append_fragments',
    says: /no fragment `house`/,
  },
  {
    name: 'a broken tag in a prompt',
    files: { 'city.toml': '', 'agents/a/prompt.template.md': 'a\n{% if AgentName %}\n' },
    at: 'agents/a/prompt.template.md:2:1 ',
    says: /not closed/,
  },
  {
    name: 'a tag that reaches for files',
    files: { 'city.toml': '', 'agents/a/prompt.template.md': '{% include "/etc/passwd" %}' },
    at: 'agents/a/prompt.template.md:1:1 ',
    says: /include/,
  },
  {
    name: 'an unknown variable in a command',
    files: { 'city.toml': '[[agent]]\nname = "a"\npre_start = ["echo {{ Sesion }}"]\n' },
    at: 'city.toml:3:14 pre_start',
    says: /no variable `Sesion`/,
    hint: /Session/,
  },
  {
    name: 'a default route to a pool',
    files: {
      'city.toml':
        '[[agent]]\nname = "x"\nmax_active_sessions = 3\n[[extmsg.default_route]]\nprovider = "irc"\nagent = "x"\n',
    },
    at: 'city.toml:6:9 extmsg.default_route[0].agent',
    says: /no named session or single agent `x`/,
  },
  {
    name: 'a default route to a shell',
    files: {
      'city.toml':
        '[[agent]]\nname = "x"\nprovider = "shell"\n[[named_session]]\nname = "y"\ntemplate = "x"\n[[extmsg.default_route]]\nprovider = "irc"\nagent = "y"\n',
    },
    at: 'city.toml:9:9 extmsg.default_route[0].agent',
    says: /`y` takes no messages/,
  },
  {
    name: 'a default route to nobody',
    files: { 'city.toml': '[[extmsg.default_route]]\nprovider = "irc"\nagent = "x"\n' },
    at: 'city.toml:3:9 extmsg.default_route[0].agent',
    says: /no named session or single agent `x`/,
  },
  {
    name: 'an order override for no rig',
    files: { 'city.toml': '[orders]\noverrides = [{ name = "o", rig = "x" }]\n' },
    at: 'city.toml:2:34 orders.overrides[0].rig',
    says: /no rig `x`/,
  },
  {
    name: 'a reserved agent name',
    files: { 'city.toml': '[[agent]]\nname = "output"\n' },
    at: 'city.toml:2:8 agent.name',
    says: /reserved/,
  },
  {
    name: 'ACP without support',
    files: {
      'city.toml':
        '[providers.codex]\nbase = "builtin:codex"\n[[agent]]\nname = "a"\nprovider = "codex"\nsession = "acp"\n',
    },
    at: 'city.toml:6:11 session',
    says: /does not support ACP/,
  },
]

for (const { name, files, at, says, hint, warning } of CASES) {
  test(`${warning === true ? 'warns of' : 'refuses'} ${name}`, () => {
    const loaded = loadFiles(files)
    const issues = warning === true ? loaded.warnings : loaded.ok ? [] : loaded.issues
    const places = issues.map((issue) => `${issue.file}:${issue.line}:${issue.column} ${issue.key}`)
    const issue = issues[places.indexOf(at)]
    assert.ok(issue, `expected ${at}, got ${JSON.stringify(issues, null, 1)}`)
    assert.match(issue.message, says)
    if (hint !== undefined) assert.match(issue.hint ?? '', hint)
    if (warning === true) assert.ok(loaded.ok, loaded.ok ? '' : JSON.stringify(loaded.issues))
    else assert.equal(issues.length, 1, JSON.stringify(issues, null, 1))
  })
}

test('all problems of all files are reported at once, in the order of files and lines', () => {
  const loaded = loadFiles({
    'city.toml': 'include = ["f.toml"]\n[workspace]\nprovder = "x"\n[daemon]\npatrol_interval = "soon"\n',
    'pack.toml': '[pack]\nname = "x"\n',
    'f.toml': '[session]\ndebounce_ms = -1\n',
    'agents/a/agent.toml': 'wake_mode = "never"\n',
  })
  assert.ok(!loaded.ok)
  assert.deepEqual(
    loaded.issues.map((issue) => `${issue.file}:${issue.line} ${issue.key}`),
    [
      'agents/a/agent.toml:1 wake_mode',
      'city.toml:3 workspace.provder',
      'city.toml:5 daemon.patrol_interval',
      'f.toml:2 session.debounce_ms',
      'pack.toml:1 pack.schema',
    ],
  )
})

test('a file that is no TOML hides no problem of another file, and makes up none', () => {
  const loaded = loadFiles({
    'city.toml': '[workspace\n',
    'pack.toml': `${PACK}[imports.x]\nsource = "./x"\n[[patches.agent]]\nname = "nobody"\n`,
    'x/pack.toml': '[pack]\nname = "x"\nschema = "2"\n',
    '.svc/site.toml': 'name = "x"\n',
    'agents/a/agent.toml': 'provider = 7\ndepends_on = ["nobody"]\n',
  })
  assert.ok(!loaded.ok)
  assert.deepEqual(
    loaded.issues.map((issue) => `${issue.file}:${issue.line} ${issue.key}`),
    ['.svc/site.toml:1 name', 'agents/a/agent.toml:1 provider', 'city.toml:1 ', 'x/pack.toml:3 pack.schema'],
  )
})

test('a file that is no text names itself', () => {
  using city = temporaryCity({ 'city.toml': '', 'agents/a/agent.toml': '' })
  writeFileSync(join(city.dir, 'agents/a/agent.toml'), Buffer.from([0x61, 0xff, 0xfe]))
  const loaded = loadCity(city.dir, OPTIONS)
  assert.ok(!loaded.ok)
  assert.deepEqual(
    loaded.issues.map(({ file, message }) => [file, message]),
    [['agents/a/agent.toml', 'cannot be read: it is not UTF-8 text']],
  )
})

test('a path may start at an imported pack by its binding', () => {
  const files = {
    'city.toml': '[[agent]]\nname = "a"\nprompt_template = "x//assets/p.md"\n',
    'pack.toml': `${PACK}[imports.x]\nsource = "./x"\n`,
    'x/pack.toml': REVIEW,
    'x/assets/p.md': 'x',
  }
  const loaded = loadFiles(files)
  assert.ok(loaded.ok)
  assert.match(loaded.config.agents[0]?.paths['prompt_template'] ?? '', /\/x\/assets\/p\.md$/)
  const unknown = loadFiles({ ...files, 'city.toml': '[[agent]]\nname = "a"\nprompt_template = "y//assets/p.md"\n' })
  assert.match(unknown.ok ? '' : (unknown.issues[0]?.message ?? ''), /no import `y`/)
  const escaping = loadFiles({ ...files, 'city.toml': '[[agent]]\nname = "a"\nprompt_template = "x//../city.toml"\n' })
  assert.match(escaping.ok ? '' : (escaping.issues[0]?.message ?? ''), /leads out of its pack/)
})

test('a directory without city.toml is no city, and a file that is none names itself', () => {
  const missing = loadFiles({ 'pack.toml': PACK })
  assert.ok(!missing.ok)
  assert.deepEqual(
    missing.issues.map((issue) => issue.file),
    ['city.toml'],
  )
  const directory = loadFiles({ 'city.toml/x': '' })
  assert.ok(!directory.ok)
  assert.deepEqual(
    directory.issues.map(({ file, message }) => [file, message]),
    [['city.toml', 'cannot be read: it is a directory']],
  )
})

test('a password in a source is never repeated', () => {
  const loaded = loadFiles({
    'city.toml': '',
    'pack.toml': `${PACK}[imports.x]\nsource = "https://me:secret@example.org/x.git"\n`,
  })
  assert.ok(!loaded.ok)
  assert.ok(!JSON.stringify(loaded.issues).includes('secret'))
})

test('hostile text is an issue, not an exception', () => {
  const texts = [
    'a = '.concat('['.repeat(100_000)),
    '\u0000',
    '[__proto__]\nx = 1\n',
    '[providers.__proto__]\ncommand = "x"\n',
    '"" = 1\n',
    'a'.repeat(100_000),
  ]
  for (const text of texts) {
    const loaded = loadFiles({ 'city.toml': text })
    assert.ok(!loaded.ok)
    assert.ok(loaded.issues.length > 0 && loaded.issues.every((issue) => issue.file === 'city.toml'), text.slice(0, 40))
  }
})
