/**
 * The contract for readers: `/docs` (Swagger UI), and the text of `openapi.json`, `events.json` and the schemas of files. The page asks our
 * own server for everything: no font, script, validator or badge comes from elsewhere.
 *
 * The bundle is that of `swagger-ui-dist`, of which `npm run build` copies the files that the page needs: the package
 * itself depends on one that reports each installation, which svcctl must not bring to its users.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface DocsAsset {
  readonly body: Buffer
  readonly type: string
}

/** No inline script and no inline handler: the page works under `script-src 'self'`. */
const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>svcctl API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<noscript>This page needs JavaScript. The contract itself: <a href="/openapi.json">/openapi.json</a>, <a href="/events.json">/events.json</a>.</noscript>
<main id="docs"></main>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`

// `validatorUrl: null`: the badge would send our address to a server of others.
const START = `SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#docs',
  validatorUrl: null,
  deepLinking: true,
  displayOperationId: true,
  displayRequestDuration: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  filter: true,
})
`

const BUNDLE_FILES: Readonly<Record<string, string>> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
}

const assets = new Map<string, DocsAsset>([
  ['start.js', { body: Buffer.from(START), type: 'text/javascript; charset=utf-8' }],
])
const texts = new Map<string, string>()

/** The HTML of `/docs`. */
export function docsPage(): string {
  return PAGE
}

/** A file of the page by its name in the table, kept after the first read; undefined for every other name. */
export function docsAsset(name: string): DocsAsset | undefined {
  const known = assets.get(name)
  if (known !== undefined) return known
  const type = Object.hasOwn(BUNDLE_FILES, name) ? BUNDLE_FILES[name] : undefined
  if (type === undefined) return undefined
  const asset = { body: readFileSync(bundleFile(name)), type }
  assets.set(name, asset)
  return asset
}

/** What a service says of itself, as it is checked in and shipped. */
export type ShippedDocument =
  | 'openapi.json'
  | 'events.json'
  | 'city.schema.json'
  | 'agent.schema.json'
  | 'formula.schema.json'
  | 'order.schema.json'

/** The text of a document, kept after the first read. */
export function documentText(name: ShippedDocument): string {
  const known = texts.get(name)
  if (known !== undefined) return known
  const text = readFileSync(join(packageRoot(), name), 'utf8')
  texts.set(name, text)
  return text
}

/** Beside the built program, or in a checkout in the package that the build copies it from. */
function bundleFile(name: string): string {
  const shipped = join(import.meta.dirname, 'swagger-ui', name)
  if (existsSync(shipped)) return shipped
  return fileURLToPath(import.meta.resolve(`swagger-ui-dist/${name}`))
}

/** The nearest directory above with a package.json: the same from `src/`, from `dist/` and when installed. */
function packageRoot(): string {
  let directory = import.meta.dirname
  while (!existsSync(join(directory, 'package.json'))) {
    const parent = dirname(directory)
    if (parent === directory) throw new Error(`no package.json above ${import.meta.dirname}`)
    directory = parent
  }
  return directory
}
