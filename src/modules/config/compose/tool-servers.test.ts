import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadFiles } from '../testing.ts'

test('a server of tools that is both a program and an address, or neither, is refused with its line', () => {
  const loaded = loadFiles({
    'city.toml': `[workspace]
provider = "own"
[session.mcp_servers.both]
command = "serve"
url = "http://127.0.0.1:1/"
[providers.own]
base = "builtin:claude"
[providers.own.mcp_servers.none]
args = ["x"]
[providers.heir]
base = "provider:own"
[[agent]]
name = "clerk"
[agent.mcp_servers.fine]
url = "https://example.org/mcp"
[agent.mcp_servers.odd]
url = "https://example.org/mcp"
command = "serve"
`,
  })
  assert.ok(!loaded.ok)
  assert.deepEqual(
    loaded.issues.map(({ file, line, key }) => [file, line, key]),
    [
      ['city.toml', 5, 'mcp_servers.both.url'],
      ['city.toml', 8, 'mcp_servers.none'],
      ['city.toml', 17, 'mcp_servers.odd.url'],
    ],
  )
})
