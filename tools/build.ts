// What `npm run build` and `npm pack` run: JavaScript for the package. A checkout runs src as it is; an installed package
// cannot, because Node refuses to strip types under node_modules.
//
// dist mirrors src file by file, so a path relative to a source file (`../../openapi.json`, a preset beside its loader)
// holds in both. Nothing goes to stdout: `npm pack --json` prints there.
import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const SHEBANG = '#!/usr/bin/env node\n'

const root = resolve(import.meta.dirname, '..')
const source = join(root, 'src')
const dist = join(root, 'dist')

rmSync(dist, { recursive: true, force: true })

const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc')
const compiled = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], {
  cwd: root,
  stdio: ['ignore', 2, 2],
})
if (compiled.status !== 0) process.exit(1)

const isAsset = (path: string) => !/\.tsx?$/.test(path)
for (const entry of globSync('**/*', { cwd: source, withFileTypes: true })) {
  const path = join(entry.parentPath, entry.name)
  if (entry.isFile() && isAsset(path)) cpSync(path, join(dist, path.slice(source.length)))
}

// The files that /docs serves, and the licences that they come under.
const swagger = dirname(fileURLToPath(import.meta.resolve('swagger-ui-dist/package.json')))
for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js', 'swagger-ui-bundle.js.LICENSE.txt', 'LICENSE', 'NOTICE'])
  cpSync(join(swagger, name), join(dist, 'http', 'swagger-ui', name))

const main = join(dist, 'main.js')
const text = readFileSync(main, 'utf8')
if (!text.startsWith(SHEBANG)) writeFileSync(main, SHEBANG + text.replace(/^#!.*\n/, ''))
chmodSync(main, 0o755)
