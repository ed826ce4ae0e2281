// Lints an OpenAPI document by Redocly's recommended rules, and prints a line for each finding: severity, rule, place, message.
import { createConfig, lint } from "@redocly/openapi-core";

const config = await createConfig({ extends: ["recommended"] });
for (const p of await lint({ ref: process.argv[2], config })) {
  console.log([p.severity, p.ruleId, p.location[0]?.pointer ?? "", p.message].join(" "));
}
