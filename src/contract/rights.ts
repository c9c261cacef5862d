/**
 * The right that each operation needs. Every operation stands here once: one that does not, does not compile, so nobody
 * gets a right by an oversight.
 */
import type { OperationId } from './index.ts'

/** Operations by the right that they need (`ACCESS` says what each right is). */
const RIGHTS = {
  any: [
    // Cities
    'list-cities',
    // Health and readiness
    'get-health',
    'get-readiness',
    'get-provider-readiness',
    // Needs
    'list-needs',
    // Requests
    'list-requests',
    'get-request',
    // Documents
    'get-openapi',
    'get-event-schema',
    'get-city-schema',
    'get-agent-schema',
    'get-formula-schema',
    'get-order-schema',
    'get-docs',
    'get-docs-asset',
  ],
  read: [
    // Cities
    'get-city',
    'get-city-status',
    'get-city-health',
    // Health and readiness
    'get-city-readiness',
    'get-city-provider-readiness',
    // Event bus
    'list-city-events',
    'stream-city-events',
    // Packs
    'list-packs',
    'get-pack',
    'explain-pack',
    // Needs
    'list-city-needs',
    // Config
    'get-config',
    'explain-config',
    'validate-config',
    'get-config-defaults',
    'list-config-files',
    'get-agent-prompt',
    'get-agent-prompt-qualified',
    'list-agent-patches',
    'get-agent-patch',
    'get-agent-patch-qualified',
    'list-rig-patches',
    'get-rig-patch',
    'list-provider-patches',
    'get-provider-patch',
    // Rigs
    'list-rigs',
    'get-rig',
    // Beads
    'list-beads',
    'list-ready-beads',
    'query-beads',
    'list-hook',
    'export-beads',
    'get-bead-graph',
    'get-bead',
    'list-bead-deps',
    'list-bead-comments',
    // Convoys
    'list-convoys',
    'list-stranded',
    'get-convoy',
    'check-convoy',
    // Mail
    'list-mail',
    'count-mail',
    'check-mail',
    'get-mail-thread',
    'get-mail',
    // Molecules
    'list-molecules',
    'get-molecule',
    'list-molecule-steps',
    'get-molecule-step',
    'get-molecule-graph',
    // Agents
    'list-agents',
    'get-agent',
    'get-agent-qualified',
    'get-agent-output',
    'stream-agent-output',
    'get-agent-output-qualified',
    'stream-agent-output-qualified',
    // Sessions
    'list-sessions',
    'get-session',
    'get-session-options',
    'list-session-deliveries',
    'get-session-drain',
    'get-session-pending',
    'list-pending',
    'get-session-transcript',
    'stream-session',
    'list-session-agents',
    'get-session-agent',
    'list-waits',
    'get-wait',
    'get-session-screen',
    // Worktrees
    'list-worktrees',
    'get-worktree',
    // Services
    'list-services',
    'get-service',
    // Providers
    'list-providers',
    'list-public-providers',
    'get-provider',
    // Usage
    'list-usage',
    'get-session-usage',
    'get-budget',
    // Formulas
    'list-formulas',
    'validate-formula',
    'get-formula',
    'preview-formula',
    // Orders
    'validate-order',
    'list-orders',
    'list-order-history',
    'get-order-run',
    'get-order',
    // Transcripts
    'list-transcripts',
    'get-transcript-attachment',
    'get-transcript',
    'list-transcript-entries',
    'stream-transcript',
    'get-transcript-backfill',
    'list-transcript-memberships',
    // Participants
    'list-participants',
    'list-groups',
    'get-group',
    'list-bindings',
    'get-binding',
    'get-participant',
    // Adapters
    'list-adapters',
    'get-adapter',
    'list-deliveries',
    'get-delivery',
  ],
  work: [
    // Event bus
    'emit-event',
    // Beads
    'create-bead',
    'claim-hook',
    'create-bead-batch',
    'import-beads',
    'patch-bead',
    'delete-bead',
    'close-bead',
    'reopen-bead',
    'assign-bead',
    'route-bead',
    'claim-bead',
    'heartbeat-bead',
    'release-bead',
    'add-bead-dep',
    'remove-bead-dep',
    'add-bead-label',
    'remove-bead-label',
    'add-bead-comment',
    // Convoys
    'create-convoy',
    'check-convoys',
    'patch-convoy',
    'delete-convoy',
    'add-to-convoy',
    'remove-from-convoy',
    'close-convoy',
    'land-convoy',
    // Mail
    'send-mail',
    'broadcast-mail',
    'archive-mails',
    'delete-mail',
    'read-mail',
    'mark-mail-unread',
    'archive-mail',
    'unarchive-mail',
    'reply-mail',
    // Molecules
    'start-molecule',
    'cancel-molecule',
    'retry-molecule',
    'delete-molecule',
    // Sling
    'sling',
    // Sessions
    'send-session-message',
    'prompt-session',
    'submit-session',
    'nudge-session',
    'cancel-wait',
    // Transcripts
    'ensure-transcript',
    'upload-transcript-attachment',
    'publish-transcript-entry',
    'ack-transcript',
    'delete-transcript-membership',
  ],
  self: [
    'request-session-restart',
    'heartbeat-session',
    'ack-session-drain',
    'create-session-wait',
    'report-session',
    'ask-session-permission',
  ],
  city: [
    // Cities
    'patch-city',
    'start-city',
    'stop-city',
    'restart-city',
    // Packs
    'add-pack',
    'trust-pack',
    'remove-pack',
    'install-packs',
    'upgrade-packs',
    'check-packs',
    // Needs
    'snooze-need',
    // Config
    'check-config',
    'reload-config',
    'get-config-file',
    'put-config-file',
    'put-agent-patch',
    'replace-agent-patch',
    'merge-agent-patch',
    'delete-agent-patch',
    'replace-agent-patch-qualified',
    'merge-agent-patch-qualified',
    'delete-agent-patch-qualified',
    'put-rig-patch',
    'replace-rig-patch',
    'merge-rig-patch',
    'delete-rig-patch',
    'put-provider-patch',
    'replace-provider-patch',
    'merge-provider-patch',
    'delete-provider-patch',
    // Rigs
    'create-rig',
    'patch-rig',
    'delete-rig',
    'act-on-rig',
    // Agents
    'create-agent',
    'replace-agent',
    'patch-agent',
    'delete-agent',
    'suspend-agent',
    'resume-agent',
    'replace-agent-qualified',
    'patch-agent-qualified',
    'delete-agent-qualified',
    'suspend-agent-qualified',
    'resume-agent-qualified',
    // Sessions
    'create-session',
    'prune-sessions',
    'delete-session',
    'cancel-session-delivery',
    'stop-session',
    'kill-session',
    'suspend-session',
    'wake-session',
    'resume-session',
    'close-session',
    'reset-session',
    'drain-session',
    'undrain-session',
    'release-session-name',
    // Worktrees
    'prune-worktrees',
    'delete-worktree',
    // Services
    'restart-service',
    'suspend-service',
    'resume-service',
    'get-service-log',
    'list-service-secrets',
    'put-service-secret',
    'delete-service-secret',
    // Providers
    'create-provider',
    'patch-provider',
    'delete-provider',
    // Formulas
    'get-formula-source',
    'put-formula',
    'delete-formula',
    // Orders
    'get-order-source',
    'put-order',
    'delete-order',
    'run-order',
    'check-order',
    'enable-order',
    'disable-order',
    // Transcripts
    'delete-transcript',
    'put-transcript-membership',
    // Participants
    'upsert-participant',
    'remove-participant-by-handle',
    'ensure-group',
    'patch-group',
    'delete-group',
    'bind-conversation',
    'unbind-conversations',
    'end-binding',
    'remove-participant',
    // Adapters
    'register-adapter',
    'patch-adapter',
    'delete-adapter',
    'receive-inbound',
    'create-child-conversation',
    'claim-deliveries',
    'ack-delivery',
    'fail-delivery',
    'retry-delivery',
    'delete-delivery',
  ],
  answer: [
    'patch-session',
    'respond-session',
    'stream-session-terminal',
    'type-into-session',
    'resize-session-terminal',
    'send-session-keys',
  ],
  supervisor: [
    // Cities
    'adopt-city',
    'create-city',
    'unregister-city',
    // Health and readiness
    'get-metrics',
    // Event bus
    'list-events',
    'stream-events',
    // Packs
    'list-pack-cache',
    'prune-pack-cache',
  ],
  tokens: ['list-tokens', 'create-token', 'delete-token'],
} as const satisfies Readonly<Record<string, readonly OperationId[]>>

type Rights = typeof RIGHTS
export type Right = keyof Rights

/** Operations that no list above has: give each of them a right. */
type Undeclared = Exclude<OperationId, Rights[Right][number]>
const undeclared: { readonly [Id in Undeclared]: Right } = {}

/** The right by operation; throws for an operation that two lists have. */
export const RIGHT_OF: ReadonlyMap<string, Right> = byOperation()

function byOperation(): ReadonlyMap<string, Right> {
  const found = new Map<string, Right>(Object.entries<Right>(undeclared))
  for (const right of Object.keys(RIGHTS).filter(isRight))
    for (const id of RIGHTS[right]) {
      if (found.has(id)) throw new Error(`operation ${id} has two rights: ${found.get(id)} and ${right}`)
      found.set(id, right)
    }
  return found
}

function isRight(name: string): name is Right {
  return name in RIGHTS
}
