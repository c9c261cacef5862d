/**
 * Variables that belong to whatever started the supervisor, and mislead a program that is started elsewhere: the
 * repository of a git hook, the session of a coding agent, the window of a terminal, a build, a unit of systemd.
 */

/** `git rev-parse --local-env-vars` prints these; git hooks, `git rebase --exec` and direnv set them. */
const OF_A_REPOSITORY = [
  'GIT_ALTERNATE_OBJECT_DIRECTORIES',
  'GIT_ATTR_SOURCE',
  'GIT_COMMON_DIR',
  'GIT_CONFIG',
  'GIT_CONFIG_COUNT',
  'GIT_CONFIG_PARAMETERS',
  'GIT_DIR',
  'GIT_GRAFT_FILE',
  'GIT_IMPLICIT_WORK_TREE',
  'GIT_INDEX_FILE',
  'GIT_INTERNAL_SUPER_PREFIX',
  'GIT_NAMESPACE',
  'GIT_NO_REPLACE_OBJECTS',
  'GIT_OBJECT_DIRECTORY',
  'GIT_PREFIX',
  'GIT_REF_STORAGE_FORMAT',
  'GIT_REPLACE_REF_BASE',
  'GIT_SHALLOW_FILE',
  'GIT_WORK_TREE',
  // What a running command of git tells those that it starts.
  ...['GIT_AUTHOR_DATE', 'GIT_COMMITTER_DATE', 'GIT_CEILING_DIRECTORIES', 'GIT_DISCOVERY_ACROSS_FILESYSTEM'],
  ...['GIT_EDITOR', 'GIT_EXEC_PATH', 'GIT_QUARANTINE_PATH', 'GIT_REFLOG_ACTION', 'GIT_SEQUENCE_EDITOR'],
  ...['GIT_CONFIG_KEY_*', 'GIT_CONFIG_VALUE_*', 'GIT_PUSH_OPTION_*', 'DIRENV_*'],
] as const

/** A harness that finds one of these believes that it is started inside a session of its own kind, or in its sandbox. */
const OF_A_HARNESS = [
  ...['CLAUDECODE', 'CLAUDE_AGENT_SDK_*', 'CLAUDE_PID', 'CLAUDE_PROJECT_DIR', 'CLAUDE_ENV_FILE', 'CLAUDE_PLUGIN_ROOT'],
  ...['CODEX_CI', 'CODEX_INTERNAL_*', 'CODEX_MANAGED_*', 'CODEX_SANDBOX*', 'CODEX_SESSION_ID', 'CODEX_THREAD_ID'],
  ...['GEMINI_CLI', 'GEMINI_CLI_IDE_*', 'GEMINI_CLI_NO_RELAUNCH', 'GEMINI_CLI_SESSION_ID', 'SANDBOX', 'QWEN_CODE'],
  ...['QWEN_CODE_IDE_*', 'QWEN_CODE_NO_RELAUNCH', 'OPENCODE', 'OPENCODE_CALLER', 'OPENCODE_PID', 'OPENCODE_SESSION*'],
  ...['AGENT', 'AI_AGENT', 'AMP_CURRENT_THREAD_ID', 'AMP_THREAD_ID', 'AUGMENT_AGENT', 'CLINE_ACTIVE', 'COPILOT_CLI'],
  ...['CURSOR_AGENT', 'CURSOR_CLI', 'CURSOR_TRACE_ID', 'GOOSE_TERMINAL', 'KIRO_*', 'ROO_ACTIVE', 'TRAE_*', 'CRUSH'],
] as const

/** Settings of Claude Code that people make for good; every other `CLAUDE_CODE_…` is of one session. */
const SETTINGS_OF_CLAUDE =
  /^CLAUDE_CODE_(?:ADDITIONAL|API_KEY|ATTRIBUTION|AUTO|BLOCKING|CERT|CLIENT|DEBUG|DISABLE|EFFORT|ENABLE|EXTRA|FORCE|GIT_BASH|HIDE|HTTP|IDE_HOST|IDE_SKIP|MAX|NO|OAUTH_(?!SCOPES)|OTEL|PLUGIN|PROXY|SCRIPT|SHELL|SIMPLE|SKIP|SUBAGENT|SYNTAX|USE)/

const OF_A_TERMINAL = [
  ...['TERM', 'TERMCAP', 'TERM_PROGRAM', 'TERM_PROGRAM_VERSION', 'TERM_SESSION_ID', 'TERMINAL_EMULATOR', 'COLUMNS'],
  ...['LINES', 'WINDOWID', 'TMUX', 'TMUX_PANE', 'TMUX_TMPDIR', 'STY', 'ZELLIJ', 'ZELLIJ_*', 'SSH_TTY', 'VTE_VERSION'],
  ...['ALACRITTY_*', 'GHOSTTY_*', 'ITERM_*', 'KITTY_*', 'KONSOLE_*', 'LC_TERMINAL', 'LC_TERMINAL_VERSION'],
  ...['VSCODE_*', 'WEZTERM_*', 'WT_*', 'ELECTRON_RUN_AS_NODE', 'PWD', 'OLDPWD', 'SHLVL', '_'],
] as const

/** A harness that reads `CI` takes its terminal for a log that nobody answers (gemini 0.61.0 ends with 42). */
const OF_A_BUILD = [
  ...['CI', 'CONTINUOUS_INTEGRATION', 'GITHUB_ACTIONS', 'GITLAB_CI', 'BUILD_ID', 'BUILD_NUMBER', 'MAKEFLAGS'],
  ...['MAKELEVEL', 'MFLAGS', 'INIT_CWD', 'npm_*', 'NODE_CHANNEL_*', 'NODE_OPTIONS', 'NODE_UNIQUE_ID', 'NODE_TEST_*'],
] as const

const OF_A_UNIT = [
  ...['CREDENTIALS_DIRECTORY', 'INVOCATION_ID', 'JOURNAL_STREAM', 'LISTEN_FDNAMES', 'LISTEN_FDS', 'LISTEN_PID'],
  ...['MAINPID', 'MEMORY_PRESSURE_*', 'NOTIFY_SOCKET', 'SYSTEMD_EXEC_PID', 'WATCHDOG_PID', 'WATCHDOG_USEC'],
] as const

const NAMES = [...OF_A_REPOSITORY, ...OF_A_HARNESS, ...OF_A_TERMINAL, ...OF_A_BUILD, ...OF_A_UNIT, 'SVC_*']
const EXACT: ReadonlySet<string> = new Set(NAMES.filter((name) => !name.endsWith('*')))
const BEGINNINGS = NAMES.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))

export const isOfStartingShell = (name: string): boolean =>
  EXACT.has(name) ||
  BEGINNINGS.some((beginning) => name.startsWith(beginning)) ||
  (name.startsWith('CLAUDE_CODE_') && !SETTINGS_OF_CLAUDE.test(name))
