// The conformance runner imports fs.globSync, which Node 20 doesn't have, for commands that the tests don't use: it gets one that refuses.
import * as fs from "node:fs";
import { register } from "node:module";

if (!fs.globSync) {
  const shim = `export * from "node:fs"; export { default } from "node:fs";
    export const globSync = () => { throw new Error("this Node has no fs.globSync"); };`;
  const hooks = `export const resolve = (specifier, context, next) => specifier === "fs"
    ? { url: ${JSON.stringify("data:text/javascript," + encodeURIComponent(shim))}, shortCircuit: true } : next(specifier, context);`;
  register("data:text/javascript," + encodeURIComponent(hooks));
}
