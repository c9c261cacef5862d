/** `./svcctl` of a checkout: fast where all is installed, and never on packages of another lockfile. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'

test('after a pull that brings another lockfile, svcctl installs before it runs', () => {
  const root = mkdtempSync(join(tmpdir(), 'checkout-'))
  const place = (path: string, text: string) => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
    chmodSync(join(root, path), 0o755)
  }
  copyFileSync(new URL('../../../svcctl', import.meta.url), join(root, 'svcctl'))
  place('tools/toolchain/node_modules/node-any/bin/node', '#!/bin/sh\necho at once\n')
  place('bin/node', '#!/bin/sh\necho set-up first\n')
  for (const path of ['node_modules/.lock-hash', 'package.json', 'package-lock.json']) place(path, '')
  const written = (path: string, at: number) => utimesSync(join(root, path), at, at)
  const said = () =>
    execFileSync(join(root, 'svcctl'), ['version'], {
      env: { PATH: `${join(root, 'bin')}:${process.env['PATH']}` },
      encoding: 'utf8',
    }).trim()

  for (const path of ['package.json', 'package-lock.json']) written(path, 1000)
  written('node_modules/.lock-hash', 2000)
  assert.equal(said(), 'at once')
  written('package-lock.json', 3000)
  assert.equal(said(), 'set-up first')
  written('node_modules/.lock-hash', 4000)
  assert.equal(said(), 'at once')
})
