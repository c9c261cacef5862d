// Makes clients of openapi.json with the generators that people use, and compiles what comes: a contract that only our own
// client can read is none. What is not on this machine, or cannot be fetched, is left out, and said so.
//
//   npm run clients                 all of them
//   npm run clients -- go python    some
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const DEADLINE_MS = 600_000
const root = resolve(import.meta.dirname, '..')
const OPENAPI_TYPESCRIPT = '7.13.0'

type Step = readonly string[]
interface Generator {
  readonly name: string
  /** The program that has to be there. */
  readonly needs: string
  /** Fetches the generator; where it fails, the registry is out of reach. */
  readonly fetch: readonly Step[]
  /** Makes and compiles a client of `openapi.json`, in a directory of its own. */
  readonly make: readonly Step[]
  readonly files?: Readonly<Record<string, string>>
  /** What the generator says of something that it left out, and should not have. */
  readonly complaint?: RegExp
}

const TSC = [
  'npx',
  'tsc',
  '--noEmit',
  '--strict',
  '--skipLibCheck',
  '--target',
  'es2022',
  '--moduleResolution',
  'bundler',
  '--module',
  'esnext',
]
const GENERATORS: readonly Generator[] = [
  {
    name: 'openapi-typescript',
    needs: 'npm',
    fetch: [['npm', 'install', '--no-audit', '--no-fund', `openapi-typescript@${OPENAPI_TYPESCRIPT}`, 'typescript@5']],
    make: [
      ['npx', 'openapi-typescript', 'openapi.json', '-o', 'schema.ts'],
      [...TSC, 'schema.ts'],
    ],
  },
  {
    name: 'hey-api',
    needs: 'npm',
    fetch: [['npm', 'install', '--no-audit', '--no-fund', '@hey-api/openapi-ts', 'typescript@5']],
    make: [
      ['npx', 'openapi-ts', '-i', 'openapi.json', '-o', 'client'],
      [...TSC, '--lib', 'es2022,dom,dom.iterable', 'client/index.ts'],
    ],
  },
  {
    name: 'python (openapi-python-client)',
    needs: 'python3',
    fetch: [
      ['python3', '-m', 'venv', 'venv'],
      ['venv/bin/pip', 'install', '-q', 'openapi-python-client', 'httpx', 'attrs', 'python-dateutil'],
    ],
    make: [
      [
        'venv/bin/openapi-python-client',
        'generate',
        '--path',
        'openapi.json',
        '--output-path',
        'client',
        '--overwrite',
      ],
      ['python3', '-m', 'compileall', '-q', 'client'],
    ],
    // Media types that it does not know are its own business.
    complaint: /Cannot take allOf|Unable to parse|invalid schema/i,
  },
  {
    name: 'go (oapi-codegen)',
    needs: 'go',
    fetch: [['go', 'install', 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2']],
    files: { 'go.mod': 'module client\n\ngo 1.22\n' },
    make: [
      ['bin/oapi-codegen', '-generate', 'types,client', '-package', 'client', '-o', 'client.go', 'openapi.json'],
      ['go', 'mod', 'tidy'],
      ['go', 'vet', './...'],
    ],
  },
]

const words = process.argv.slice(2)
const chosen = GENERATORS.filter(({ name }) => words.length === 0 || words.some((word) => name.includes(word)))
const failed = chosen.filter((one) => !holds(one))
process.exitCode = failed.length === 0 ? 0 : 1

/** True where the generator's client compiles, or the generator cannot be had. */
function holds(generator: Generator): boolean {
  const { name, needs, fetch, make, files = {}, complaint } = generator
  if (spawnSync('sh', ['-c', `command -v ${needs}`]).status !== 0) return leftOut(name, `${needs} is not installed`)
  const directory = mkdtempSync(join(tmpdir(), 'svc-client-'))
  try {
    mkdirSync(join(directory, 'bin'))
    copyFileSync(join(root, 'openapi.json'), join(directory, 'openapi.json'))
    for (const [path, text] of Object.entries({ 'package.json': '{}', ...files }))
      writeFileSync(join(directory, path), text)
    for (const step of fetch) {
      const { ok, said } = run(step, directory)
      if (!ok) return leftOut(name, said.trim().split('\n').at(-1) ?? '')
    }
    for (const step of make) {
      const { ok, said } = run(step, directory)
      if (!ok || complaint?.test(said) === true) {
        process.stdout.write(`FAILED ${name}: ${step.join(' ')}\n${said.slice(-4000)}\n`)
        return false
      }
    }
    process.stdout.write(`ok     ${name}\n`)
    return true
  } finally {
    // The module cache of Go is read-only.
    spawnSync('chmod', ['-R', 'u+w', directory])
    rmSync(directory, { recursive: true, force: true })
  }
}

function run([program = '', ...args]: Step, cwd: string): { readonly ok: boolean; readonly said: string } {
  const env = { ...process.env, GOBIN: join(cwd, 'bin'), GOFLAGS: '-mod=mod' }
  const done = spawnSync(program, args, { cwd, env, encoding: 'utf8', timeout: DEADLINE_MS, maxBuffer: 1 << 28 })
  return { ok: done.status === 0, said: `${done.stdout ?? ''}${done.stderr ?? ''}` }
}

function leftOut(name: string, why: string): boolean {
  process.stdout.write(`LEFT OUT ${name}: ${why}\n`)
  return true
}
