/** Sessions and what they say, as the supervisor joins them. */

import { agentOutputOperations } from '../../contract/agents.ts'
import { sessionReportOperations } from '../../contract/sessions/reports.ts'
import { sessionOperations } from '../../contract/sessions/sessions.ts'
import { terminalOperations } from '../../contract/sessions/terminal.ts'
import type { Clock } from '../../kernel/clock.ts'
import { migrationsOf } from '../../kernel/database.ts'
import { defineFamily } from '../../kernel/family.ts'
import type { Jobs } from '../../kernel/jobs.ts'
import type { Runtime } from '../../runtimes/process/runtime.ts'
import type { SessionCity } from './http/handlers.ts'
import { createSessionOptionHandlers } from './http/handlers-options.ts'
import { createSessionReadHandlers } from './http/handlers-read.ts'
import { createSessionReportHandlers } from './http/handlers-report.ts'
import { createSessionSayHandlers } from './http/handlers-say.ts'
import { createSessionSteerHandlers } from './http/handlers-steer.ts'
import { sessionJobs } from './plan/jobs.ts'
import { questionNeeds, sessionNeeds } from './plan/needs.ts'
import { Sessions } from './plan/service.ts'
import type { SessionsDeps } from './record/ports.ts'
import { SESSIONS_SCHEMA } from './record/schema.ts'
import { createTerminalHandlers } from './terminal/handlers.ts'
import { createTranscriptHandlers, type TranscriptCity } from './transcripts/handlers.ts'

export interface SessionContext extends SessionsDeps {
  /** What is closed with the city. */
  readonly opened: readonly Runtime[]
  readonly launch: Jobs['launchAnswering']
  /** What its sessions say. */
  readonly said: (sessions: Sessions) => TranscriptCity
  /** Calls for every change of the configuration; `soft`: what runs takes it as its own. */
  readonly onReconfigured: (listener: (soft: boolean) => void) => void
}

type OpenCity = SessionCity & TranscriptCity & { readonly opened: readonly Runtime[] }

export const sessions = defineFamily({
  operations: [...sessionOperations, ...sessionReportOperations, ...terminalOperations, ...agentOutputOperations],
  schema: migrationsOf('sessions', ...SESSIONS_SCHEMA),
  handlers: (host: { readonly clock: Clock }) => ({
    ...createSessionReadHandlers(host),
    ...createSessionSayHandlers(),
    ...createSessionOptionHandlers(host),
    ...createSessionSteerHandlers(host),
    ...createSessionReportHandlers(),
    ...createTranscriptHandlers(host),
    ...createTerminalHandlers(host),
  }),
  traits: { 'ask-session-permission': { waits: true } },
  opensIn: 'adopting_sessions',
  open: (context: SessionContext): OpenCity => {
    const { city, store, opened, launch, said } = context
    const all = new Sessions(context)
    context.onReconfigured((soft) => all.reconfigured(soft))
    return { ...city, ...said(all), store, sessions: all, deps: context, opened, launch }
  },
  retention: ({ sessions: { retention } }) => [
    { name: 'sessions', setting: () => retention.settings, run: () => retention.sweep() },
  ],
  phases: {
    adopting_sessions: (city) => city.sessions.adopt(),
    starting_agents: (city) => city.sessions.start(),
  },
  needs: ({ sessions: all }) => [questionNeeds(all), sessionNeeds(all)],
  jobs: (city) => sessionJobs(city.sessions),
  async stop({ sessions: all, opened }, { force, preserve, ended }) {
    try {
      if (preserve) all.release()
      else ended(await all.stop({ force }))
    } finally {
      await Promise.all(opened.map((runtime) => runtime.close()))
    }
  },
})
