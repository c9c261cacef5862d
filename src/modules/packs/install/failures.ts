/** Failures of packs in the words of `request.failed`. */

import { SourceError } from '../../../files/pack-source.ts'
import { VersionError } from '../../../files/pack-version.ts'
import { TreeRefused } from '../../../files/tree.ts'
import { JobFailure } from '../../../kernel/jobs.ts'
import { CredentialError } from '../remote/credentials.ts'
import { BlockedHost, UnknownHost } from '../remote/fence.ts'
import { GitError } from '../remote/git.ts'
import { LockError } from '../store/lock.ts'
import { ConstraintConflict, UnusableImport } from './installer.ts'

/** The files are not what a run looked at. */
export class Stale extends Error {}

const GIT_CODES: Readonly<Record<GitError['reason'], string>> = {
  missing: 'missing_dependency',
  credentials: 'pack_credential_required',
  untrusted_host: 'untrusted_host',
  not_found: 'clone_failed',
  timeout: 'timeout',
  too_large: 'clone_failed',
  failed: 'clone_failed',
}

/** In the words of `request.failed`; what is not known here stays as it is. */
export function toFailure(error: unknown): Error {
  if (error instanceof BlockedHost) return new JobFailure('blocked_host', error.message)
  if (error instanceof UnknownHost) return new JobFailure('clone_failed', error.message)
  if (error instanceof TreeRefused) return new JobFailure('clone_failed', `the pack cannot be used: ${error.message}`)
  if (error instanceof GitError) return new JobFailure(GIT_CODES[error.reason], error.message)
  if (error instanceof CredentialError) return new JobFailure('pack_credential_required', error.message)
  if (error instanceof ConstraintConflict) return new JobFailure('version_conflict', error.message)
  if (
    error instanceof VersionError ||
    error instanceof SourceError ||
    error instanceof UnusableImport ||
    error instanceof LockError
  ) {
    return new JobFailure('invalid_config', error.message)
  }
  if (error instanceof Stale) return new JobFailure('conflict_config', 'the files of the city keep changing')
  return error instanceof Error ? error : new Error(String(error))
}
