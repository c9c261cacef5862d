/** Certificates of a test's own, made by openssl. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Authority {
  /** Its certificate, as `ca_file` names it. */
  readonly file: string
  /** A server's key and certificate for a name, such as `IP:127.0.0.1`. */
  issue(name: string): { readonly key: string; readonly cert: string }
}

const CURVE = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'] as const

/** An issuer of certificates that nobody else knows. */
export function makeAuthority(dir: string, called: string): Authority {
  const at = (name: string): string => join(dir, `${called}-${name}`)
  const openssl = (...args: readonly string[]): void =>
    void execFileSync('openssl', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const [caKey, file] = [at('ca.key'), at('ca.pem')]
  openssl('req', '-x509', ...CURVE, '-keyout', caKey, '-out', file, '-subj', `/CN=${called}`)
  let issued = 0
  return {
    file,
    issue(name) {
      issued += 1
      const [key, cert] = [at(`${issued}.key`), at(`${issued}.pem`)]
      const names = ['-subj', '/CN=packs', '-addext', `subjectAltName=${name}`, '-addext', 'basicConstraints=CA:FALSE']
      openssl('req', '-x509', ...CURVE, '-CA', file, '-CAkey', caKey, '-keyout', key, '-out', cert, ...names)
      return { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
    },
  }
}
