// Langfuse's own functions on what its client sent: `node langfuse_server.mjs LANGFUSE FOLDER` reads FOLDER/sent.json
// and writes FOLDER/download.json. Packages that are not installed in FOLDER are empty in the bundle, since nothing of
// them is called; the enumerations of the database are read from its schema.
import fs from "fs";
import { createRequire, isBuiltin } from "module";
import path from "path";

const [root, folder] = process.argv.slice(2);
const shared = `${root}/packages/shared/src`;
const require = createRequire(`${folder}/x.js`);
const esbuild = require("esbuild");
const INSTALLED = /^(zod|lodash|decimal\.js|superjson|@opentelemetry\/api)(\/|$)/;
const WITHIN = { "@langfuse/shared": "index", "@langfuse/shared/src/server": "server/index",
                 "@langfuse/shared/src/env": "env", "@langfuse/shared/src/db": "db",
                 "@langfuse/shared/encryption": "encryption/index" };
const EMPTY = `const any = () => new Proxy(function () {}, {
  get: (_, key) => key === Symbol.toPrimitive ? () => "" : key === "then" ? undefined : any(),
  apply: any, construct: any, has: () => true });
`;
// What the download asks the database for.
const QUERIES = `const given = globalThis.given;
export const getTraceByIdFromEventsTable = async () => given.trace;
export const getObservationsCountFromEventsTable = async () => given.observations.length;
export const getObservationsForTraceFromEventsTable = async () => ({ observations: given.observations });
export const getScoresAndCorrectionsForTraces = async () => given.scores;
`;
const ENTRY = `export { OtelIngestionProcessor } from "${shared}/server/otel/OtelIngestionProcessor";
export { IngestionService } from "${root}/worker/src/services/IngestionService";
export { convertEventsObservation } from "${shared}/server/repositories/observations_converters";
export { buildTraceExport } from "${root}/web/src/features/traces/server/buildTraceExport";
export { stringify } from "${shared}/utils/stringify";
`;

function enumerations() {
  const text = fs.readFileSync(`${root}/packages/shared/prisma/schema.prisma`, "utf8");
  const found = [...text.matchAll(/^enum (\w+) \{([^}]*)\}/gm)].map(([, name, body]) => {
    const names = [...body.matchAll(/^\s+(\w+)/gm)].map((match) => [match[1], match[1]]);
    return `export const ${name} = ${JSON.stringify(Object.fromEntries(names))};\n`;
  });
  return `${EMPTY}export const Prisma = any(), PrismaClient = any();\n${found.join("")}`;
}

function file(base) {
  const names = ["", ".ts", ".tsx", ".json", "/index.ts", "/index.tsx"].map((end) => base.replace(/\.js$/, "") + end);
  return names.find((name) => fs.existsSync(name) && fs.statSync(name).isFile());
}

const parts = {
  name: "parts",
  setup(build) {
    build.onResolve({ filter: /.*/ }, ({ path: name, importer, resolveDir, kind }) => {
      if (kind === "entry-point" || importer.includes("/node_modules/")) return;
      if (name === "@prisma/client") return { path: name, namespace: "enumerations" };
      if (name === "@langfuse/shared/src/server" && importer.endsWith("buildTraceExport.ts"))
        return { path: name, namespace: "queries" };
      if (WITHIN[name]) return { path: `${shared}/${WITHIN[name]}.ts` };
      if (isBuiltin(name)) return { path: name, external: true };
      if (INSTALLED.test(name)) return { path: require.resolve(name) };
      const base = name.startsWith("@/src") ? path.join(root, "web", name.slice(2)) : path.resolve(resolveDir, name);
      const found = /^(\.|\/|@\/src)/.test(name) && file(base);
      return found ? { path: found } : { path: name, namespace: "empty" };
    });
    build.onLoad({ filter: /.*/, namespace: "enumerations" }, () => ({ contents: enumerations() }));
    build.onLoad({ filter: /.*/, namespace: "queries" }, () => ({ contents: QUERIES }));
    build.onLoad({ filter: /.*/, namespace: "empty" }, () => ({
      contents: `${EMPTY}const traps = { get: (_, key) => (key === "__esModule" ? true : any()), has: () => true };
module.exports = new Proxy(function () {}, { ...traps, getPrototypeOf: () => new Proxy(function () {}, traps) });`,
    }));
  },
};

fs.writeFileSync(`${folder}/entry.ts`, ENTRY);
await esbuild.build({ entryPoints: [`${folder}/entry.ts`], outfile: `${folder}/bundle.cjs`, bundle: true,
                      platform: "node", plugins: [parts], logLevel: "error" });
for (const name of ["LANGFUSE_S3_EVENT_UPLOAD_BUCKET", "CLICKHOUSE_USER", "CLICKHOUSE_PASSWORD", "SALT",
                    "NEXTAUTH_SECRET"]) process.env[name] = "x";
for (const name of ["CLICKHOUSE_URL", "DATABASE_URL", "NEXTAUTH_URL"]) process.env[name] = "http://x";
globalThis.given = {};
const langfuse = require(`${folder}/bundle.cjs`);

const projectId = "p";
const sent = JSON.parse(fs.readFileSync(`${folder}/sent.json`, "utf8"));
const of = { projectId, publicKey: "pk", sdkName: "python", sdkVersion: "5.0.4" };
const events = new langfuse.OtelIngestionProcessor(of).processToEvent(sent.spans);
const service = Object.create(langfuse.IngestionService.prototype);  // without prices of models
service.getGenerationUsage = async ({ observationRecord: row }) => ({ usage_details: row.provided_usage_details });
const time = (microseconds) => new Date(microseconds / 1000).toISOString().replace("T", " ").replace("Z", "");
const records = await Promise.all(events.map((event) => service.createEventRecord(event, "")));
const rows = records.map((row) => ({
  ...row, parent_observation_id: row.parent_span_id,
  metadata: Object.fromEntries(row.metadata_names.map((name, i) => [name, row.metadata_values[i]])),
  start_time: time(row.start_time), end_time: time(row.end_time),
  created_at: time(row.start_time), updated_at: time(row.end_time),
}));
const plain = { truncated: false, shouldJsonParse: false };
Object.assign(globalThis.given, {
  observations: rows.map((row) => langfuse.convertEventsObservation(row, plain, true)),
  trace: { id: rows[0].trace_id, timestamp: new Date(), public: true, tags: [], bookmarked: false, name: "lead" },
  scores: sent.scores.map((score) => ({
    ...score, projectId, source: "API", timestamp: new Date(score.timestamp), createdAt: new Date(score.timestamp),
    updatedAt: new Date(score.timestamp), observationId: score.observationId ?? null, environment: "default",
    dataType: score.dataType ?? "NUMERIC",
    ...(score.dataType === "CATEGORICAL" && { stringValue: score.value, value: 0 }),
  })),
});
const download = await langfuse.buildTraceExport({ traceId: rows[0].trace_id, projectId, session: null });
fs.writeFileSync(`${folder}/download.json`, langfuse.stringify(download, undefined, 2));
