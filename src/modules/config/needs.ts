/** Files of the configuration that are not in force because they are not valid. */
import { issueText, type NeedSource } from '../../kernel/needs.ts'
import type { ConfigError } from './edit/city-config.ts'

const SUBJECT = 'city.toml'

export const configNeeds = (config: { readonly lastError: ConfigError | undefined }): NeedSource => ({
  name: 'config',
  types: ['config.*'],
  subjectsOf: () => [SUBJECT],
  subjects: () => [SUBJECT],
  needsOf: () => {
    const { lastError } = config
    if (lastError === undefined) return []
    const { since, issues } = lastError
    return [
      {
        key: 'rejected',
        kind: 'config_rejected',
        since,
        subject: { kind: 'config', id: SUBJECT, name: SUBJECT },
        title: 'The configuration on disk is not valid; an older one is in force',
        detail: issues.map(issueText).join('\n'),
        operations: [{ operation: 'validate-config', params: {}, label: 'Check', command: 'svcctl config validate' }],
      },
    ]
  },
})
