/** First words, and the module behind each: only the one that is named is loaded (style R16). */
import type { CommandModule } from './base/command.ts'

export interface Noun {
  readonly summary: string
  readonly load: () => Promise<CommandModule>
}

export const NOUNS: Readonly<Record<string, Noun>> = {
  events: { summary: 'List, watch and follow events', load: () => import('./commands/events.ts') },
  event: { summary: 'Append an event to a city’s log', load: () => import('./commands/event.ts') },
  city: { summary: 'Cities: create, start, stop, look', load: () => import('./commands/city.ts') },
  agent: { summary: 'Agents of a city: who can work', load: () => import('./commands/agent.ts') },
  bead: { summary: 'Beads: units of work, and what they wait for', load: () => import('./commands/bead.ts') },
  convoy: { summary: 'Convoys: groups of work', load: () => import('./commands/convoy.ts') },
  formula: { summary: 'Formulas: methods that molecules are made of', load: () => import('./commands/formula.ts') },
  molecule: { summary: 'Molecules: formulas at work', load: () => import('./commands/molecule.ts') },
  sling: { summary: 'Give work to an agent or pool', load: () => import('./commands/sling.ts') },
  session: { summary: 'Sessions: conversations with agents', load: () => import('./commands/session.ts') },
  order: { summary: 'Orders: what a city does by itself, and when', load: () => import('./commands/order.ts') },
  mail: {
    summary: 'Mail: what people and agents write to each other',
    load: () => import('./commands/messaging/mail.ts'),
  },
  adapter: {
    summary: 'Adapters: what carries messages of chats',
    load: () => import('./commands/messaging/adapter.ts'),
  },
  transcript: {
    summary: 'Transcripts: what was said in chats',
    load: () => import('./commands/messaging/transcript.ts'),
  },
  participant: {
    summary: 'Participants of chats: bindings, groups, handles',
    load: () => import('./commands/messaging/participant.ts'),
  },
  worktree: {
    summary: 'Worktrees: where sessions work that are isolated',
    load: () => import('./commands/worktree.ts'),
  },
  service: {
    summary: 'Services of a city: programs that serve HTTP',
    load: () => import('./commands/service.ts'),
  },
  status: { summary: 'How everything is, at a glance', load: () => import('./commands/status.ts') },
  top: { summary: 'The fleet as it lives, on a screen', load: () => import('./commands/top.ts') },
  needs: { summary: 'Everything that waits for a person', load: () => import('./commands/needs.ts') },
  doctor: {
    summary: 'Everything that is broken or waits, and what mends it',
    load: () => import('./commands/doctor.ts'),
  },
  config: { summary: 'Configuration of a city: look, check, edit, reload', load: () => import('./commands/config.ts') },
  pack: { summary: 'Packs of a city: what it imports', load: () => import('./commands/pack.ts') },
  rig: { summary: 'Rigs of a city: its project directories', load: () => import('./commands/rig.ts') },
  provider: { summary: 'Providers of a city: what agents run on', load: () => import('./commands/provider.ts') },
  patch: { summary: 'Patches of agents, rigs and providers', load: () => import('./commands/patch.ts') },
  request: { summary: 'Accepted requests and their outcome', load: () => import('./commands/request.ts') },
  health: { summary: 'Is the supervisor well', load: () => import('./commands/health.ts') },
  readiness: { summary: 'Can providers and tools of this host be used', load: () => import('./commands/health.ts') },
  'provider-readiness': { summary: 'Can providers of this host be used', load: () => import('./commands/health.ts') },
  usage: { summary: 'Tokens and money that agents have used', load: () => import('./commands/usage.ts') },
  budget: { summary: 'What today cost, and what it may cost', load: () => import('./commands/usage.ts') },
  token: { summary: 'Tokens: who else is let in', load: () => import('./commands/token.ts') },
  bridge: {
    summary: 'Bridges: carry messages between a city and chats',
    load: () => import('./commands/messaging/bridge.ts'),
  },
  api: { summary: 'Any request of the API, with credentials', load: () => import('./commands/api.ts') },
  schema: { summary: 'The machine-readable contract', load: () => import('./commands/schema.ts') },
  completion: { summary: 'Completion script for a shell', load: () => import('./commands/completion.ts') },
  version: { summary: 'Version of this program and of the server', load: () => import('./commands/version.ts') },
}

/** In the help only: `src/start.ts` sends it to the supervisor. */
export const SERVE_SUMMARY = 'Run the supervisor'
