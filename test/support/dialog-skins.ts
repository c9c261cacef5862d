/** How harnesses draw their input line and what they ask: for agents that only draw them, and for tests that know what is there. */

export interface Dialog {
  readonly above: readonly string[]
  readonly options: readonly string[]
  /** The option that must never be chosen by anything but an answer; the cursor begins there. */
  readonly harmful: number
  readonly draw: (option: string, index: number, here: boolean) => string
  readonly below?: readonly string[]
  /** All in one row. */
  readonly row?: true
  /** Digits choose at once. */
  readonly digits?: true
  /** One letter and Enter, read as a line. */
  readonly line?: true
}

export interface Skin {
  readonly program: string
  readonly prompt?: string
  /** `input`: what stands in the line. */
  readonly drawPrompt: (input: string) => readonly string[]
  readonly dialogs: readonly Dialog[]
}

const RULE = '─'.repeat(70)
const numbered =
  (pointer: string) =>
  (option: string, index: number, here: boolean): string =>
    ` ${here ? pointer : ' '} ${index + 1}. ${option}`
const pointed =
  (pointer: string) =>
  (option: string, _index: number, here: boolean): string =>
    ` ${here ? pointer : ' '} ${option}`
const painted =
  (color: string) =>
  (option: string, _index: number, here: boolean): string =>
    here ? `${color} ${option} \u001b[0m` : ` ${option} `
const faint = (text: string) => `\u001b[2m${text}\u001b[22m`

/** Menus of no harness in particular: each must be seen on the screen of every one. */
const ANYBODYS: readonly Dialog[] = [
  {
    above: ['Mám smazat adresář build?'],
    options: ['Ano, smazat', 'Ne'],
    harmful: 0,
    draw: numbered('❯'),
    digits: true,
  },
  {
    above: ['Soll das Verzeichnis gelöscht werden?', ''],
    options: ['Löschen', 'Behalten', 'Später fragen'],
    harmful: 0,
    draw: pointed('▸'),
    below: ['', '↑/↓ wählen · Enter bestätigen'],
  },
  { above: ['削除しますか'], options: ['はい', 'いいえ'], harmful: 0, draw: painted('\u001b[7m') },
  { above: ['Delete the build directory? [Y/n]'], options: ['Y', 'n'], harmful: 0, draw: () => '', line: true },
]

export const SKINS: readonly Skin[] = [
  {
    program: 'claude',
    prompt: '❯ ',
    drawPrompt: (input) => [RULE, `❯ ${input}`, RULE, '  ? for shortcuts'],
    dialogs: [
      {
        above: [RULE, ' Bash command', '', '   rm -rf build', '', ' Do you want to proceed?'],
        options: ['Yes', "Yes, and don't ask again for: rm -rf build", 'No'],
        harmful: 0,
        draw: numbered('❯'),
        below: ['', ' Esc to cancel'],
        digits: true,
      },
      ...ANYBODYS,
    ],
  },
  {
    program: 'codex',
    prompt: '› ',
    drawPrompt: (input) => [
      '',
      `› ${input === '' ? faint('Explain this codebase') : input}`,
      '',
      '  gpt-5 · 100% context left',
    ],
    dialogs: [
      {
        above: ['  Would you like to run the following command?', '', '  $ rm -rf build', ''],
        options: [
          'Yes, proceed (y)',
          "Yes, and don't ask again for `rm` (p)",
          'No, and tell Codex what to do differently (esc)',
        ],
        harmful: 0,
        draw: (option, index, here) => `${here ? '›' : ' '} ${index + 1}. ${option}`,
        below: ['', '  Press enter to confirm or esc to cancel'],
        digits: true,
      },
      ...ANYBODYS,
    ],
  },
  {
    program: 'gemini',
    prompt: '> ',
    drawPrompt: (input) => [
      `╭${RULE}╮`,
      `│ > ${input === '' ? '  Type your message or @path/to/file' : input}`,
      `╰${RULE}╯`,
      ' ~/project   no sandbox   auto',
    ],
    dialogs: [
      {
        above: [`╭${RULE}╮`, '│ ? Shell rm -rf build', '│', "│ Allow execution of: 'rm'?", '│'],
        options: ['Allow once', 'Allow for this session', 'No, suggest changes (esc)'],
        harmful: 0,
        draw: (option, index, here) => `│ ${here ? '●' : ' '} ${index + 1}. ${option}`,
        below: [`╰${RULE}╯`],
        digits: true,
      },
      ...ANYBODYS,
    ],
  },
  {
    program: 'agent',
    prompt: '→ ',
    drawPrompt: (input) => ['', `  → ${input === '' ? faint('Add a follow-up') : input}`, '', '  Auto · 12%'],
    dialogs: [
      {
        above: ['  $ rm -rf build in .', '', '  Run this command?', '  Not in allowlist: rm'],
        options: ['Run (once) (y)', 'Add to allowlist? (tab)', 'Skip (esc or n)'],
        harmful: 0,
        draw: pointed('→'),
      },
      ...ANYBODYS,
    ],
  },
  {
    program: 'opencode',
    drawPrompt: (input) => [
      `┃  ${input === '' ? faint('Ask anything…') : input}`,
      '┃',
      '┃  Build  gpt-5',
      '',
      '   ctrl+p commands',
    ],
    dialogs: [
      {
        above: ['┃  △ Permission required', '┃    # Delete the build directory', '┃    $ rm -rf build', '┃'],
        options: ['Allow once', 'Allow always', 'Reject'],
        harmful: 0,
        draw: painted('\u001b[48;2;250;178;131m\u001b[38;2;10;10;10m'),
        row: true,
        below: ['', '   ⇆ select  enter confirm'],
      },
      ...ANYBODYS,
    ],
  },
  { program: 'nobodys', drawPrompt: (input) => ['', `$$ ${input}`], dialogs: ANYBODYS },
]
