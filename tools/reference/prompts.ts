/** The page of prompt templates: their variables, their filters, and those of fields that are templates. */
import { FIELD_VARIABLES, PROMPT_FILTERS, PROMPT_VARIABLES } from '../../src/contract/prompt-words.ts'
import { codeList, page, table } from './markdown.ts'

const INTRO = `Prompts are files of an agent: \`prompt.md\` is taken as it stands, \`prompt.template.md\` is a template in [Liquid](https://liquidjs.com). An unknown variable, filter or fragment is an error when the city is loaded, with file, line and column. \`svcctl agent prompt AGENT\` shows the prompt as the agent gets it; \`svcctl config validate\` checks all of them, also those of a rig that does not exist yet.

\`\`\`liquid
You are {{ AgentName | basename }} of {{ CityName }}{% if Rig != "" %}, in {{ Rig }} at {{ RigRoot }}{% endif %}.
See what is ready with \`{{ "bead ready" | cmd }}\`.
{% render "house-rules" %}
\`\`\``

const KINDS: Readonly<Record<keyof typeof FIELD_VARIABLES, string>> = {
  command: 'commands, such as `pre_start`, `session_setup` and `work_query`',
  path: 'paths, such as `work_dir`',
  session: '`[workspace] session_template`',
  resume: '`resume_command` of a provider',
}

export const promptsPage = (): string =>
  page('Prompt templates', INTRO, [
    [
      '## Variables',
      rowsOf(PROMPT_VARIABLES),
      'The names in `env` of the agent are variables too; they replace none of these.',
    ].join('\n\n'),
    ['## Filters', rowsOf(PROMPT_FILTERS), 'Filters of Liquid, such as `default` and `upcase`, work as well.'].join(
      '\n\n',
    ),
    [
      '## Fragments',
      '`{% render "NAME" %}` inserts `template-fragments/NAME.md` of the agent, the city or a pack; the nearest one wins. A fragment sees the variables of every prompt. `[workspace] global_fragments` and `append_fragments` of an agent put fragments behind the prompt.',
    ].join('\n\n'),
    [
      '## Fields that are templates',
      table(
        ['In', 'Variables'],
        Object.entries(FIELD_VARIABLES).map(([kind, names]) => [kindWords(kind), codeList(names)]),
      ),
    ].join('\n\n'),
  ])

const kindWords = (kind: string): string => Object.entries(KINDS).find(([name]) => name === kind)?.[1] ?? kind

const rowsOf = (words: Readonly<Record<string, string>>): string =>
  table(
    ['Name', 'What it is'],
    Object.entries(words).map(([name, text]) => [`\`${name}\``, text]),
  )
