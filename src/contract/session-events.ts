/** What the log of a city says about sessions and waits (sheet 04 §12). */
import type { EventTypes } from './base/event-type.ts'
import {
  SessionCreateSucceededPayload,
  SessionDeliveryPayload,
  SessionLifecyclePayload,
  SessionMessageSucceededPayload,
  SessionPendingClearedPayload,
  SessionPendingPayload,
  SessionStrandedPayload,
  SessionSubmitSucceededPayload,
  SessionUpdatedPayload,
  WaitPayload,
  WorkerOperationPayload,
} from './session-model.ts'

const inLog = { log: 'city', emittedBy: 'sessions' } as const

export const SESSION_EVENT_TYPES = {
  'session.created': { payload: SessionLifecyclePayload, ...inLog, when: 'a session was accepted' },
  'session.waking': {
    payload: SessionLifecyclePayload,
    ...inLog,
    when: 'something wants it to run: it waits for its turn to start',
  },
  'session.starting': { payload: SessionLifecyclePayload, ...inLog, when: 'its process is being started' },
  'session.woke': { payload: SessionLifecyclePayload, ...inLog, when: 'its process is ready' },
  'session.stopped': { payload: SessionLifecyclePayload, ...inLog, when: 'its process ended in an orderly way' },
  'session.asleep': { payload: SessionLifecyclePayload, ...inLog, when: 'it sleeps: nothing wants it to run' },
  'session.crashed': {
    payload: SessionLifecyclePayload,
    ...inLog,
    when: 'its process ended unexpectedly; `message` has its last screen',
  },
  'session.start_failed': { payload: SessionLifecyclePayload, ...inLog, when: 'a start did not succeed' },
  'session.killed': {
    payload: SessionLifecyclePayload,
    ...inLog,
    when: 'its processes were ended by force, on request',
  },
  'session.draining': { payload: SessionLifecyclePayload, ...inLog, when: 'it was asked to finish' },
  'session.undrained': { payload: SessionLifecyclePayload, ...inLog, when: 'a drain was taken back' },
  'session.quarantined': {
    payload: SessionLifecyclePayload,
    ...inLog,
    when: 'it crashed too often; it is tried again later',
  },
  'session.suspended': { payload: SessionLifecyclePayload, ...inLog, when: 'it was stopped until a person wakes it' },
  'session.idle_killed': { payload: SessionLifecyclePayload, ...inLog, when: 'it was idle too long and starts afresh' },
  'session.max_age_killed': { payload: SessionLifecyclePayload, ...inLog, when: 'it was too old and starts afresh' },
  'session.reset': { payload: SessionLifecyclePayload, ...inLog, when: 'it starts again with a fresh conversation' },
  'session.closed': { payload: SessionLifecyclePayload, ...inLog, when: 'it ended for good' },
  'session.deleted': { payload: SessionLifecyclePayload, ...inLog, when: 'its record was deleted' },
  'session.unknown_state': {
    payload: SessionLifecyclePayload,
    ...inLog,
    when: 'its process could not be observed for too long',
  },
  'session.updated': {
    payload: SessionUpdatedPayload,
    ...inLog,
    when: 'its title, alias, options or other fields changed',
  },
  'session.pending': { payload: SessionPendingPayload, ...inLog, when: 'it waits for an answer' },
  'session.pending_cleared': {
    payload: SessionPendingClearedPayload,
    ...inLog,
    when: 'it no longer waits for an answer',
  },
  'session.delivery': { payload: SessionDeliveryPayload, ...inLog, when: 'a delivery changed its state' },
  'session.stranded': { payload: SessionStrandedPayload, ...inLog, when: 'it ended while it held work' },
  'request.result.session.create': {
    payload: SessionCreateSucceededPayload,
    ...inLog,
    when: 'the session can take commands',
  },
  'request.result.session.message': {
    payload: SessionMessageSucceededPayload,
    ...inLog,
    when: 'the message was typed, or is queued',
  },
  'request.result.session.submit': {
    payload: SessionSubmitSucceededPayload,
    ...inLog,
    when: 'the message was typed, or is queued',
  },
  'worker.operation': { payload: WorkerOperationPayload, ...inLog, when: 'a call of a runtime ended' },
  'wait.created': { payload: WaitPayload, ...inLog, when: 'a session waits for beads' },
  'wait.ready': { payload: WaitPayload, ...inLog, when: 'what it waited for is closed' },
  'wait.canceled': { payload: WaitPayload, ...inLog, when: 'the wait was cancelled, or its session is gone' },
  'wait.expired': { payload: WaitPayload, ...inLog, when: 'the wait took too long' },
} as const satisfies EventTypes
