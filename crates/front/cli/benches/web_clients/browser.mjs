// Runs a speed test's own script in headless Chromium against http://server:8080, and prints its
// figures as a line of JSON: node browser.mjs ndt7|cloudflare|page, the last for our own page. The packages are in WEB_CLIENTS.
import fs from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';

const which = process.argv[2];
const modules = `${process.env.WEB_CLIENTS}/node_modules/`;
const { chromium } = createRequire(modules)('playwright-core');
const FILES = {
  '/ndt7.js': '@m-lab/ndt7/src/ndt7.js',
  '/ndt7-download-worker.js': '@m-lab/ndt7/src/ndt7-download-worker.js',
  '/ndt7-upload-worker.js': '@m-lab/ndt7/src/ndt7-upload-worker.js',
  '/speedtest.js': '@cloudflare/speedtest/dist/speedtest.js',
};

const pages = http.createServer((request, answer) => {
  const file = FILES[request.url.split('?')[0]];
  answer.setHeader('content-type', file ? 'text/javascript' : 'text/html');
  const script = which === 'ndt7' ? '<script src="/ndt7.js"></script>' : '';
  answer.end(file ? fs.readFileSync(modules + file) : `<!doctype html><title>x</title>${script}`);
});
await new Promise((listening) => pages.listen(0, '127.0.0.1', listening));
const origin = `http://127.0.0.1:${pages.address().port}`;

async function ndt7(server) {
  const found = { down: {}, up: {}, errors: [] };
  const of = (data) => ({
    client: data.LastClientMeasurement,
    tcp: data.LastServerMeasurement.TCPInfo,
  });
  const config = {
    userAcceptedDataPolicy: true,
    mlabDataPolicyInapplicable: true,
    protocol: 'ws',
    server,
    downloadworkerfile: '/ndt7-download-worker.js',
    uploadworkerfile: '/ndt7-upload-worker.js',
  };
  const code = await globalThis.ndt7.test(config, {
    error: (error) => found.errors.push(String(error)),
    downloadComplete: (data) => { found.down = of(data); },
    uploadComplete: (data) => { found.up = of(data); },
  });
  if (code !== 0) found.errors.push(`code ${code}`);
  return found;
}

async function cloudflare(server) {
  const { default: SpeedTest } = await import(`${location.origin}/speedtest.js`);
  const down = (bytes, count) => ({ type: 'download', bytes, count });
  const up = (bytes, count) => ({ type: 'upload', bytes, count });
  const test = new SpeedTest({
    autoStart: false,
    downloadApiUrl: `http://${server}/__down`,
    uploadApiUrl: `http://${server}/__up`,
    logAimApiUrl: null,
    logMeasurementApiUrl: null,
    measurements: [
      { type: 'latency', numPackets: 20 }, down(1e5, 9), down(1e6, 8), up(1e5, 8), up(1e6, 6),
      down(1e7, 6), up(1e7, 4), down(2.5e7, 4), up(2.5e7, 4), down(1e8, 3), up(5e7, 3),
    ],
  });
  return new Promise((done) => {
    const errors = [];
    test.onError = (error) => errors.push(String(error));
    test.onFinish = (results) => done({ summary: results.getSummary(), errors });
    test.play();
  });
}

const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-dev-shm-usage'],
});
try {
  const page = await browser.newPage();
  if (which === 'page') {
    await page.goto('http://server:8080/?autostart&thorough=1');
    const ended = () =>
      ['finished', 'invalid', 'problem'].includes(document.documentElement.dataset.state ?? '');
    await page.waitForFunction(ended, null, { timeout: 90_000 });
    console.log(await page.evaluate(() => document.documentElement.dataset.result ?? '{}'));
  } else {
    await page.goto(`${origin}/`);
    const run = which === 'ndt7' ? ndt7 : cloudflare;
    console.log(JSON.stringify(await page.evaluate(run, 'server:8080')));
  }
} finally {
  await browser.close();
  pages.close();
}
