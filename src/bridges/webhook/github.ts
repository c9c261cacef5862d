/** Events of GitHub as lines that an agent can read: who did what to what, where it is, and what was written. */
import { cut } from '../../contract/base/text.ts'
import { at, firstLine, type Json, list, text } from './reading.ts'

const MOST_BODY = 4_000
const MOST_COMMITS = 10

export interface Told {
  readonly conversation: string
  readonly actor: { readonly id: string; readonly display_name: string; readonly is_bot: boolean }
  readonly text: string
}

/** Undefined: it is no event of anything (a `ping`). */
export function readGithub(event: string, payload: Json): Told | undefined {
  if (event === 'ping') return undefined
  const login = text(payload, 'sender', 'login') || 'github'
  const place = text(payload, 'repository', 'full_name') || text(payload, 'organization', 'login') || 'github'
  const say = SAYINGS[event] ?? sayAnything
  return {
    conversation: place,
    actor: {
      id: `github:${text(payload, 'sender', 'id') || login}`,
      display_name: login,
      is_bot: text(payload, 'sender', 'type') === 'Bot',
    },
    text: say(payload, { event, login, place })
      .filter((line) => line.trim() !== '')
      .join('\n'),
  }
}

interface Place {
  readonly event: string
  readonly login: string
  readonly place: string
}
type Saying = (payload: Json, place: Place) => readonly string[]

const words = (name: string): string => name.replaceAll('_', ' ')
const action = (payload: Json): string => words(text(payload, 'action')) || 'changed'
const body = (value: unknown): string => cut(text(value, 'body').trim(), MOST_BODY, '…')

/** `ana opened issue #7 in o/r: Title`, the address, and what was written. */
const about =
  (kind: string, key: string): Saying =>
  (payload, { login, place }) => {
    const thing = at(payload, key)
    const label = text(payload, 'label', 'name')
    const assignee = text(payload, 'assignee', 'login')
    const more = [label && `label ${label}`, assignee && `to ${assignee}`].filter(Boolean).join(', ')
    const number = text(thing, 'number')
    const done = at(thing, 'merged') === true && text(payload, 'action') === 'closed' ? 'merged' : action(payload)
    return [
      `${login} ${done} ${kind}${number && ` #${number}`}${more && ` (${more})`} in ${place}: ${text(thing, 'title') || text(thing, 'name')}`,
      text(thing, 'html_url'),
      ['opened', 'reopened', 'edited', 'published', 'created'].includes(text(payload, 'action')) ? body(thing) : '',
    ]
  }

const comment =
  (kind: string, key: string, verb = 'commented on'): Saying =>
  (payload, { login, place }) => {
    const said = at(payload, 'comment') ?? at(payload, 'review')
    const isChange = ['edited', 'deleted', 'dismissed'].includes(text(payload, 'action'))
    const did = isChange ? `${action(payload)} a comment on` : verb
    const number = text(payload, key, 'number')
    const title = text(payload, key, 'title')
    const where = text(said, 'path') && ` (${text(said, 'path')}${text(said, 'line') && `:${text(said, 'line')}`})`
    return [
      `${login} ${did} ${kind}${number && ` #${number}`} in ${place}${title && `: ${title}`}${where}`,
      text(said, 'html_url'),
      text(said, 'state') && `state: ${words(text(said, 'state'))}`,
      body(said),
    ]
  }

/** A run of CI: its state, and what the program that ran it reports. */
const run =
  (kind: string, key: string): Saying =>
  (payload, { place }) => {
    const thing = at(payload, key)
    const state = text(thing, 'conclusion') || text(thing, 'status') || action(payload)
    const branch = text(thing, 'head_branch') || text(thing, 'check_suite', 'head_branch')
    const commit = cut(text(thing, 'head_sha'), 10)
    return [
      `${kind} ${text(thing, 'name') || text(thing, 'app', 'name')} in ${place}: ${words(state)}${branch && ` on ${branch}`}${commit && ` (${commit})`}`,
      text(thing, 'html_url') || text(thing, 'details_url'),
      text(thing, 'output', 'title'),
      cut(text(thing, 'output', 'summary').trim(), MOST_BODY, '…'),
      cut(text(thing, 'output', 'text').trim(), MOST_BODY, '…'),
      ...failedSteps(thing),
    ]
  }

const failedSteps = (job: unknown): readonly string[] =>
  list(job, 'steps')
    .filter((step) => !['', 'success', 'skipped', 'neutral'].includes(text(step, 'conclusion')))
    .slice(0, MOST_COMMITS)
    .map((step) => `- step ${text(step, 'name')}: ${words(text(step, 'conclusion'))}`)

/** The older way of CI: a status of a commit. */
const commitStatus: Saying = (payload, { place }) => [
  `status ${text(payload, 'context')} in ${place}: ${text(payload, 'state')} (${cut(text(payload, 'sha'), 10)})`,
  text(payload, 'target_url'),
  text(payload, 'description'),
]

const push: Saying = (payload, { login, place }) => {
  const branch = text(payload, 'ref').replace(/^refs\/(heads|tags)\//, '')
  const commits = list(payload, 'commits')
  if (at(payload, 'deleted') === true) return [`${login} deleted ${branch} in ${place}`]
  const how = at(payload, 'forced') === true ? 'force-pushed' : 'pushed'
  const lines = commits
    .slice(0, MOST_COMMITS)
    .map(
      (one) =>
        `- ${cut(text(one, 'id'), 10)} ${firstLine(text(one, 'message'))} (${text(one, 'author', 'username') || text(one, 'author', 'name')})`,
    )
  const left = commits.length - lines.length
  return [
    `${login} ${how} ${commits.length} ${commits.length === 1 ? 'commit' : 'commits'} to ${branch} in ${place}`,
    text(payload, 'compare'),
    ...lines,
    left > 0 ? `- and ${left} more` : '',
  ]
}

/** An event that has no sentence of its own: its object, whatever it is called, and what that has in words. */
const sayAnything: Saying = (payload, { event, login, place }) => {
  const done = text(payload, 'action')
  const thing = at(payload, event) ?? at(payload, event.slice(event.lastIndexOf('_') + 1))
  const about = [thing, at(thing, 'security_advisory'), at(payload, 'security_advisory'), at(thing, 'rule'), payload]
  const first = (...fields: readonly string[]) =>
    about.flatMap((one) => fields.map((field) => text(one, field))).find((found) => found.trim() !== '') ?? ''
  const state = text(thing, 'state') || text(thing, 'status') || text(thing, 'severity')
  const title = first('title', 'name', 'summary')
  return [
    `${words(event)}${done && ` ${words(done)}`} by ${login} in ${place}${title && `: ${firstLine(title)}`}`,
    first('html_url', 'target_url', 'environment_url', 'url_html'),
    state && `state: ${words(state)}`,
    cut(first('body', 'description').trim(), MOST_BODY, '…'),
  ]
}

const reference: Saying = (payload, { event, login, place }) => [
  `${login} ${event}d ${text(payload, 'ref_type')} ${text(payload, 'ref')} in ${place}`,
]

const SAYINGS: Readonly<Record<string, Saying>> = {
  push,
  create: reference,
  delete: reference,
  issues: about('issue', 'issue'),
  pull_request: about('pull request', 'pull_request'),
  release: about('release', 'release'),
  discussion: about('discussion', 'discussion'),
  issue_comment: comment('issue', 'issue'),
  commit_comment: comment('a commit', 'commit'),
  discussion_comment: comment('discussion', 'discussion'),
  pull_request_review: comment('pull request', 'pull_request', 'reviewed'),
  pull_request_review_comment: comment('pull request', 'pull_request'),
  workflow_run: run('workflow', 'workflow_run'),
  workflow_job: run('job', 'workflow_job'),
  status: commitStatus,
  check_run: run('check', 'check_run'),
  check_suite: run('checks of', 'check_suite'),
}
