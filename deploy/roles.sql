-- Run once by a superuser of PostgreSQL 16 or newer:  psql -f roles.sql
-- Who may only make roles and databases, as on managed PostgreSQL, begins with
-- GRANT yester_owner TO CURRENT_USER before the last command, and may have to leave yester_backup out.
-- Nobody can log in with a password until one is given:  \password yester_owner

-- What a server may do with the tables; nobody logs in as it.
CREATE ROLE yester_app NOLOGIN NOBYPASSRLS;
-- Owns the tables: makes and updates them, lets people in (yester team).
CREATE ROLE yester_owner LOGIN NOBYPASSRLS;
-- What serves: row-level security binds it, and it can let nobody in.
CREATE ROLE yester_server LOGIN NOBYPASSRLS IN ROLE yester_app;
-- Makes copies: it must see the rows of every tenant, and changes none.
CREATE ROLE yester_backup LOGIN BYPASSRLS IN ROLE pg_read_all_data;

CREATE DATABASE yester OWNER yester_owner ENCODING 'UTF8' TEMPLATE template0;
