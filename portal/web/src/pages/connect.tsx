// How to reach this server: endpoints, connection strings, and a beginning in each language.

import { useState } from "preact/hooks";
import { serverInfo } from "../api/admin";
import { base } from "../api/http";
import { Button, CopyButton, Segmented } from "../ui/controls";
import { useLoad } from "../ui/load";

type Language = "python" | "js" | "dotnet" | "java" | "curl";

function snippet(language: Language, endpoint: string, key: string): string {
  switch (language) {
    case "python":
      return `from azure.cosmos import CosmosClient, PartitionKey\n\nclient = CosmosClient("${endpoint}", "${key}")\nshop = client.create_database_if_not_exists("shop")\ncarts = shop.create_container_if_not_exists("carts", PartitionKey("/user"), default_ttl=3600)\ncarts.upsert_item({"id": "1", "user": "ada"})  # gone in an hour`;
    case "js":
      return `import { CosmosClient } from "@azure/cosmos";\n\nconst client = new CosmosClient({ endpoint: "${endpoint}", key: "${key}" });\nconst { database } = await client.databases.createIfNotExists({ id: "shop" });\nconst { container } = await database.containers.createIfNotExists({ id: "carts", partitionKey: "/user", defaultTtl: 3600 });\nawait container.items.upsert({ id: "1", user: "ada" }); // gone in an hour`;
    case "dotnet":
      return `using Microsoft.Azure.Cosmos;\n\nvar client = new CosmosClient("${endpoint}", "${key}",\n    new() { ConnectionMode = ConnectionMode.Gateway, LimitToEndpoint = true });\nDatabase shop = await client.CreateDatabaseIfNotExistsAsync("shop");\nContainer carts = await shop.CreateContainerIfNotExistsAsync(\n    new ContainerProperties("carts", "/user") { DefaultTimeToLive = 3600 });`;
    case "java":
      return `CosmosClient client = new CosmosClientBuilder()\n    .endpoint("${endpoint}")\n    .key("${key}")\n    .gatewayMode()\n    .endpointDiscoveryEnabled(false)\n    .buildClient();`;
    case "curl":
      return `# What each default would do, before you set it\ncurl -H "authorization: Bearer ${key}" "${endpoint}_mayfly/ttl/shop/carts?default=3600"`;
  }
}

export function Connect({ keyText }: { keyText: string }) {
  const [language, setLanguage] = useState<Language>("python");
  const [shown, setShown] = useState(false);
  const endpoint = base;
  const connection = `AccountEndpoint=${endpoint};AccountKey=${keyText};`;
  const masked = (text: string): string => (shown ? text : text.replaceAll(keyText, "•".repeat(12)));
  const code = snippet(language, endpoint, keyText);
  return (
    <section class="card stack" aria-labelledby="connect">
      <div class="row"><h2 id="connect" class="grow">Connect</h2><Button kind="quiet" icon="key" pressed={shown} onClick={() => setShown(!shown)}>{shown ? "Hide the key" : "Show the key"}</Button></div>
      <dl class="connect">
        <dt>Endpoint</dt><dd><code>{endpoint}</code><CopyButton text={endpoint} label="Copy the endpoint" /></dd>
        <dt>Key</dt><dd><code>{masked(keyText)}</code><CopyButton text={keyText} label="Copy the key" /></dd>
        <dt>Connection string</dt><dd><code>{masked(connection)}</code><CopyButton text={connection} label="Copy the connection string" /></dd>
        <dt>Certificate</dt><dd><span class="grow small">For HTTPS, clients have to trust this server's authority.</span><a class="button quiet" href="emulator.pem" download="mayfly-ca.pem">Download</a></dd>
      </dl>
      <Segmented
        label="Language"
        value={language}
        onChange={setLanguage}
        options={[{ value: "python", text: "Python" }, { value: "js", text: "JavaScript" }, { value: "dotnet", text: ".NET" }, { value: "java", text: "Java" }, { value: "curl", text: "curl" }]}
      />
      <div class="code"><pre tabIndex={0} aria-label="Code">{masked(code)}</pre><CopyButton text={code} label="Copy the code" /></div>
    </section>
  );
}

type Shell = "mongosh" | "python" | "node";

function mongoSnippet(shell: Shell, url: string): string {
  switch (shell) {
    case "mongosh":
      return `mongosh "${url}"\n\nuse shop\ndb.sessions.createIndex({ createdAt: 1 }, { expireAfterSeconds: 3600 })\ndb.sessions.insertOne({ user: "ada", createdAt: new Date() }) // gone in an hour`;
    case "python":
      return `from datetime import datetime, timezone\nfrom pymongo import MongoClient\n\nsessions = MongoClient("${url}").shop.sessions\nsessions.create_index("createdAt", expireAfterSeconds=3600)\nsessions.insert_one({"user": "ada", "createdAt": datetime.now(timezone.utc)})  # gone in an hour`;
    case "node":
      return `import { MongoClient } from "mongodb";\n\nconst client = await MongoClient.connect("${url}");\nconst sessions = client.db("shop").collection("sessions");\nawait sessions.createIndex({ createdAt: 1 }, { expireAfterSeconds: 3600 });\nawait sessions.insertOne({ user: "ada", createdAt: new Date() }); // gone in an hour`;
  }
}

export function ConnectMongo({ keyText }: { keyText: string }) {
  const info = useLoad(serverInfo, []);
  const [shell, setShell] = useState<Shell>("mongosh");
  const [shown, setShown] = useState(false);
  const at = info.value?.mongo;
  if (!info.value) return null;
  if (!at) {
    return (
      <section class="card stack" aria-labelledby="connect-mongo">
        <h2 id="connect-mongo">Connect with MongoDB's protocol</h2>
        <p class="small faint">This server does not speak it: start it with <code>--mongo-port 27017</code>.</p>
      </section>
    );
  }
  const password = encodeURIComponent(keyText);
  const url = `mongodb://${at.user === null ? "" : `${at.user}:${password}@`}${location.hostname}:${at.port}/`;
  const masked = (text: string): string => (shown ? text : text.replaceAll(password, "•".repeat(12)));
  const code = mongoSnippet(shell, url);
  return (
    <section class="card stack" aria-labelledby="connect-mongo">
      <div class="row">
        <h2 id="connect-mongo" class="grow">Connect with MongoDB's protocol</h2>
        {at.user !== null && <Button kind="quiet" icon="key" pressed={shown} onClick={() => setShown(!shown)}>{shown ? "Hide the password" : "Show the password"}</Button>}
      </div>
      <dl class="connect"><dt>Connection string</dt><dd><code>{masked(url)}</code><CopyButton text={url} label="Copy the MongoDB connection string" /></dd></dl>
      <Segmented label="MongoDB client" value={shell} onChange={setShell} options={[{ value: "mongosh", text: "mongosh" }, { value: "python", text: "Python" }, { value: "node", text: "Node" }]} />
      <div class="code"><pre tabIndex={0} aria-label="Code for MongoDB">{masked(code)}</pre><CopyButton text={code} label="Copy the code for MongoDB" /></div>
    </section>
  );
}
